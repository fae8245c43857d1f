// Pages of a feed's steps (client/look) for Python.
//
// Thread-safe: immutable.
#ifndef SYSTOLE_CLIENT_PYTHON_EXTENSION_CONTACT_SHEETS_H_
#define SYSTOLE_CLIENT_PYTHON_EXTENSION_CONTACT_SHEETS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/python/extension/memory.h"
#include "client/step/step.h"
#include "core/order/order.h"
#include "nanobind/nanobind.h"
#include "systole/v1/feed.pb.h"

namespace systole::python {

// Has no reference to a feed, so that a batch that has a ContactSheets does not keep its feed open.
class ContactSheets {
 public:
  ContactSheets(v1::FeedSpec spec, std::shared_ptr<const StepShape> shape, std::string source,
                std::string explanation, std::optional<Order> order);

  // Returns the page for `steps`, each given with its number. Raises InvalidSpec for the errors of
  // ContactSheet().
  std::string Page(const std::vector<std::pair<int64_t, Memory>>& steps,
                   int64_t max_examples) const;

 private:
  const v1::FeedSpec spec_;
  const std::shared_ptr<const StepShape> shape_;
  const std::string source_;
  const std::string explanation_;
  const std::optional<Order> order_;
};

void DeclareContactSheets(nanobind::module_& module);

}  // namespace systole::python

#endif  // SYSTOLE_CLIENT_PYTHON_EXTENSION_CONTACT_SHEETS_H_
