#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/commands/commands.h"
#include "core/access_token/token_file.h"
#include "core/json/json_writer.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

class TokenCommand final : public Command {
 public:
  std::string name() const override { return "token"; }
  std::string summary() const override {
    return "Draw a token that lets a client in, and add its hash to a server's token file";
  }
  std::string example() const override {
    return "systole token --name trainer-a --file tokens --expires 2030-01-31 > trainer-a.token";
  }

  void Declare(OptionList& options) override {
    options.Required("--name", "NAME", &name_,
                     "The token's name in the server's config (`token_names`). Several tokens may "
                     "have the same name, so that a new one can replace an old one while both are "
                     "valid");
    options.Required("--file", "FILE", &file_,
                     "The server's token file; created, with mode 600, if it does not exist");
    options.Optional("--expires", "YYYY-MM-DD", &expires_,
                     "The last day on which the token is valid, UTC. Default: it never expires");
  }

  absl::Status Run(const Console& console) override {
    std::optional<absl::CivilDay> last_day;
    if (!expires_.empty()) {
      const absl::StatusOr<absl::CivilDay> day = ParseDay(expires_);
      if (!day.ok()) {
        return absl::InvalidArgumentError(
            absl::StrCat("--expires '", ForeignName(expires_), "': want YYYY-MM-DD"));
      }
      last_day = *day;
    }
    SYSTOLE_ASSIGN_OR_RETURN(const std::string token, AddToken(file_, name_, last_day));
    if (console.json) {
      JsonWriter json;
      json.BeginObject().Field("name", name_).Field("token", token).EndObject();
      console.out << json.text() << "\n";
    } else {
      console.out << token << "\n";
    }
    console.err << "This is the only time that the token is shown: the file has only its hash. "
                   "Keep it in a file that only its holder can read.\n";
    return absl::OkStatus();
  }

 private:
  std::string name_;
  std::string file_;
  std::string expires_;
};

}  // namespace

std::unique_ptr<Command> MakeTokenCommand() { return std::make_unique<TokenCommand>(); }

}  // namespace systole
