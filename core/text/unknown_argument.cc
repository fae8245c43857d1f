#include "core/text/unknown_argument.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/text/did_you_mean.h"
#include "core/text/foreign_text.h"
#include "core/text/web_address.h"

namespace systole {

std::string UnknownArgumentText(absl::string_view program, absl::string_view argument,
                                absl::Span<const std::string> options) {
  if (!absl::StartsWith(argument, "-")) {
    const std::string shown =
        MayHoldSecrets(argument) ? ShownAddress(argument) : std::string(argument);
    return absl::StrCat(program, ": unexpected argument '", ForeignName(shown), "'; `", program,
                        " --help` lists the arguments");
  }
  const absl::string_view option = argument.substr(0, argument.find('='));
  return absl::StrCat(program, ": there is no option '", ForeignName(option), "'; `", program,
                      " --help` lists them", DidYouMean(option, options));
}

}  // namespace systole
