#include "server/otlp/otlp_options.h"

#include <map>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

absl::StatusOr<std::optional<OtlpOptions>> Options(
    const std::string& endpoint, const std::map<std::string, std::string>& variables) {
  return OtlpOptionsOf(endpoint, "1.2.3", [&variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? "" : found->second;
  });
}

std::string UrlOf(const std::string& endpoint,
                  const std::map<std::string, std::string>& variables) {
  const auto options = Options(endpoint, variables);
  if (!options.ok()) return std::string(options.status().message());
  return options->has_value() ? (*options)->url : "";
}

std::map<std::string, std::string> TextsOf(const OtlpOptions& options) {
  std::map<std::string, std::string> texts;
  for (const SpanAttribute& attribute : options.resource) {
    const auto* const text = std::get_if<std::string>(&attribute.value);
    if (text != nullptr) texts[attribute.key] = *text;
  }
  return texts;
}

TEST(OtlpOptionsTest, WithoutAnEndpointExportIsOff) {
  EXPECT_EQ(UrlOf("", {}), "");
  EXPECT_EQ(UrlOf("", {{"OTEL_EXPORTER_OTLP_HEADERS", "a=b"}, {"OTEL_SERVICE_NAME", "x"}}), "");
}

TEST(OtlpOptionsTest, EndpointPrecedenceIsFlagThenTracesVariableThenGeneral) {
  EXPECT_EQ(UrlOf("http://a:4318", {{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://b/x"}}),
            "http://a:4318/v1/traces");
  EXPECT_EQ(UrlOf("", {{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://b/x?k=v"},
                       {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"}}),
            "http://b/x?k=v");
  EXPECT_EQ(UrlOf("", {{"OTEL_EXPORTER_OTLP_ENDPOINT", "https://c/otlp/"}}),
            "https://c/otlp/v1/traces");
  EXPECT_EQ(UrlOf("https://C", {}), "https://c/v1/traces");
}

TEST(OtlpOptionsTest, OtelSdkDisabledIgnoresTheEndpointVariableButNotTheFlag) {
  const std::map<std::string, std::string> off = {{"OTEL_SDK_DISABLED", "TRUE"},
                                                  {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"}};
  EXPECT_EQ(UrlOf("", off), "");
  EXPECT_EQ(UrlOf("http://a", off), "http://a/v1/traces");
}

TEST(OtlpOptionsTest, AnEndpointVariableForTheGrpcProtocolIsRefused) {
  std::map<std::string, std::string> variables = {{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4317"},
                                                  {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}};
  EXPECT_THAT(Options("", variables),
              StatusIs(kInvalid, AllOf(HasSubstr("OTEL_EXPORTER_OTLP_PROTOCOL"),
                                       HasSubstr("'grpc'"), HasSubstr("--otlp-endpoint"))));
  EXPECT_EQ(UrlOf("http://a", variables), "http://a/v1/traces");
  variables["OTEL_EXPORTER_OTLP_PROTOCOL"] = "http/protobuf";
  EXPECT_EQ(UrlOf("", variables), "http://c:4317/v1/traces");
}

TEST(OtlpOptionsTest, AnInvalidEndpointIsRefusedNamingItsFlagOrVariable) {
  for (const char* endpoint :
       {"localhost:4318", "ftp://a", "http://", "http://a b", "http://a:0"}) {
    EXPECT_THAT(Options(endpoint, {}), StatusIs(kInvalid, HasSubstr("--otlp-endpoint: ")));
    EXPECT_THAT(Options("", {{"OTEL_EXPORTER_OTLP_ENDPOINT", endpoint}}),
                StatusIs(kInvalid, HasSubstr("OTEL_EXPORTER_OTLP_ENDPOINT: ")));
    EXPECT_THAT(Options("", {{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", endpoint}}),
                StatusIs(kInvalid, HasSubstr("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: ")));
  }
}

TEST(OtlpOptionsTest, NoMessageShowsASecret) {
  const auto message = [](const std::string& endpoint,
                          const std::map<std::string, std::string>& variables) {
    const auto options = Options(endpoint, variables);
    EXPECT_THAT(options, StatusIs(kInvalid, HasSubstr("")));
    return std::string(options.status().message());
  };
  const std::string pair_list = std::string(9000, 'x') + "hidden";
  for (const std::string& text :
       {message("http://user:hidden@a", {}), message("http://a/?key=hidden", {}),
        message("", {{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://user:hidden@a"}}),
        message("", {{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "ftp://a/?key=hidden"}}),
        message("http://a", {{"OTEL_EXPORTER_OTLP_HEADERS", "hidden"}}),
        message("http://a", {{"OTEL_EXPORTER_OTLP_HEADERS", "=hidden"}}),
        message("http://a", {{"OTEL_EXPORTER_OTLP_HEADERS", "hidden key=hidden"}}),
        message("http://a", {{"OTEL_EXPORTER_OTLP_HEADERS", "a=hidden%0d%0ab: c"}}),
        message("http://a", {{"OTEL_EXPORTER_OTLP_HEADERS", "host=hidden"}}),
        message("http://a", {{"OTEL_EXPORTER_OTLP_TRACES_HEADERS", pair_list}})}) {
    EXPECT_THAT(text, Not(HasSubstr("hidden")));
  }
}

TEST(OtlpOptionsTest, HeadersAreDecodedAndTracesHeadersReplaceTheGeneralOnes) {
  const auto options = Options("http://a", {{"OTEL_EXPORTER_OTLP_HEADERS", "a=b"},
                                            {"OTEL_EXPORTER_OTLP_TRACES_HEADERS",
                                             " Authorization = Bearer%20x%3Dy , X-Tenant=7,"}});
  ASSERT_THAT(options, IsOk());
  EXPECT_THAT((*options)->headers,
              ElementsAre(Pair("authorization", "Bearer x=y"), Pair("x-tenant", "7")));
}

TEST(OtlpOptionsTest, TheResourceIdentifiesTheServerAndVariablesOverrideIt) {
  auto options = Options("http://a", {});
  ASSERT_THAT(options, IsOk());
  std::map<std::string, std::string> texts = TextsOf(**options);
  EXPECT_EQ(texts["service.name"], "systole-server");
  EXPECT_EQ(texts["service.version"], "1.2.3");
  EXPECT_NE(texts["host.name"], "");
  options = Options("http://a", {{"OTEL_RESOURCE_ATTRIBUTES",
                                  "service.name=one,deployment.environment=a%20b,host.name=h"}});
  ASSERT_THAT(options, IsOk());
  texts = TextsOf(**options);
  EXPECT_EQ(texts["service.name"], "one");
  EXPECT_EQ(texts["deployment.environment"], "a b");
  EXPECT_EQ(texts["host.name"], "h");
  options = Options(
      "http://a", {{"OTEL_RESOURCE_ATTRIBUTES", "service.name=one"}, {"OTEL_SERVICE_NAME", "two"}});
  EXPECT_EQ(TextsOf(**options)["service.name"], "two");
  EXPECT_THAT(Options("http://a", {{"OTEL_RESOURCE_ATTRIBUTES", "x"}}),
              StatusIs(kInvalid, HasSubstr("OTEL_RESOURCE_ATTRIBUTES: want KEY=VALUE")));
}

TEST(OtlpOptionsTest, TheTimeoutIsInMillisecondsAndBounded) {
  const auto timeout = [](const std::string& text) {
    return Options("http://a", {{"OTEL_EXPORTER_OTLP_TIMEOUT", text}});
  };
  EXPECT_EQ((*timeout("2500"))->timeout, absl::Milliseconds(2500));
  EXPECT_EQ((*timeout(""))->timeout, absl::Seconds(10));
  for (const char* text : {"0", "-1", "60001", "x", "1s"}) {
    EXPECT_THAT(timeout(text), StatusIs(kInvalid, HasSubstr("OTEL_EXPORTER_OTLP_TIMEOUT")));
  }
}

TEST(OtlpOptionsTest, TheCountAndLengthOfKeyValuePairsAreLimited) {
  std::string text = "k0=v";
  for (int i = 1; i < 64; ++i) absl::StrAppend(&text, ",k", i, "=v");
  EXPECT_THAT(ParseOtelPairs(text), IsOk());
  EXPECT_THAT(ParseOtelPairs(absl::StrCat(text, ",k64=v")), StatusIs(kInvalid, HasSubstr("")));
  EXPECT_THAT(ParseOtelPairs(absl::StrCat("k=", std::string(8190, 'v'))), IsOk());
  EXPECT_THAT(ParseOtelPairs(absl::StrCat("k=", std::string(8191, 'v'))),
              StatusIs(kInvalid, HasSubstr("")));
}

}  // namespace
}  // namespace systole
