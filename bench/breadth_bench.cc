// Measures pipelines of many kinds (breadth_rows.h), and in turns with each pipeline a ceiling of
// its own. A pipeline is complete: a StepEngine of two threads reads shards in files (in the page
// cache), with checksums, parsing, order, budget and hand-over. The ceiling has two threads, too,
// but does only the work that no implementation can leave out (bare_work.h). Its JPEGs and PNGs are
// in memory.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/bare_work.h"
#include "bench/breadth_rows.h"
#include "bench/corpora.h"
#include "bench/rounds.h"
#include "bench/taps_loop.h"
#include "benchmark/benchmark.h"
#include "core/cache/value_cache.h"
#include "core/engine/step_engine.h"
#include "core/example/example_parser.h"
#include "core/image/image_size.h"
#include "core/image/window/crop.h"
#include "core/memory/aligned_buffer.h"
#include "core/operations/ops/image_window.h"
#include "core/operations/ops/resize_method.h"
#include "core/plan/feed_plan.h"
#include "core/process/allocator.h"
#include "core/status/check.h"
#include "systole/v1/feed.pb.h"

namespace systole::bench {
namespace {

constexpr int kThreads = 2;

std::shared_ptr<const Dataset> OpenShards(const std::string& name,
                                          const std::vector<std::string>& shards) {
  absl::StatusOr<std::shared_ptr<Dataset>> dataset = Dataset::Open(name, shards);
  SYSTOLE_CHECK(dataset.ok());
  return *std::move(dataset);
}

std::shared_ptr<const FeedPlan> PlanOf(const v1::FeedSpec& spec,
                                       std::shared_ptr<const Dataset> dataset) {
  absl::StatusOr<std::shared_ptr<const FeedPlan>> plan = FeedPlan::Create(spec, std::move(dataset));
  SYSTOLE_CHECK(plan.ok());
  return *std::move(plan);
}

// The JPEG or PNG of each record.
std::vector<std::string> FilesOf(const Dataset& dataset) {
  std::vector<std::string> files;
  AlignedBuffer scratch;
  for (int64_t record = 0; record < dataset.num_records(); ++record) {
    const absl::StatusOr<absl::string_view> payload = dataset.ReadRecord(record, scratch);
    SYSTOLE_CHECK(payload.ok());
    const absl::StatusOr<ExampleView> example = ExampleView::Parse(*payload);
    SYSTOLE_CHECK(example.ok());
    const absl::StatusOr<absl::string_view> file = example->Find("image").BytesAt(0);
    SYSTOLE_CHECK(file.ok());
    files.emplace_back(*file);
  }
  return files;
}

// How a feed resizes its images. The first transform decodes, and the second one resizes.
struct Resizing {
  ResampleOptions options;
  ImageSize size;
  // resize_with_pad keeps the image's aspect ratio within `size`.
  bool keeps_aspect = false;
  // A plan that cuts the same windows out of the images as the feed does. WindowOf() gets the
  // windows only from a plan that resizes by the default method, so this plan does. Null: the
  // images are resized whole.
  std::shared_ptr<const FeedPlan> windows;

  ImageSize OutputOf(const ImageSize& in) const {
    if (!keeps_aspect) return size;
    const double scale = std::min(static_cast<double>(size.height) / in.height,
                                  static_cast<double>(size.width) / in.width);
    return {.height = static_cast<int>(in.height * scale),
            .width = static_cast<int>(in.width * scale)};
  }
};

template <typename Message>
Resizing ResizingBy(const Message& message) {
  const absl::StatusOr<ResampleOptions> options = ResampleOptionsOf(message);
  SYSTOLE_CHECK(options.ok());
  return {.options = *options, .size = {.height = message.height(), .width = message.width()}};
}

// Returns a Resizing with `windows`. Changes `spec` and its part `crop`.
template <typename Message>
Resizing ResizingByCrop(v1::FeedSpec& spec, Message& crop,
                        const std::shared_ptr<const Dataset>& dataset) {
  Resizing resizing = ResizingBy(crop);
  crop.clear_method();
  crop.clear_antialias();
  crop.clear_sampling();
  v1::Output& image = *spec.mutable_outputs(0);
  image.mutable_transforms()->DeleteSubrange(2, image.transforms_size() - 2);
  spec.clear_mix();
  resizing.windows = PlanOf(spec, dataset);
  return resizing;
}

Resizing ResizingOf(v1::FeedSpec spec, const std::shared_ptr<const Dataset>& dataset) {
  v1::Transform& transform = *spec.mutable_outputs(0)->mutable_transforms(1);
  switch (transform.kind_case()) {
    case v1::Transform::kRandomResizedCrop:
      return ResizingByCrop(spec, *transform.mutable_random_resized_crop(), dataset);
    case v1::Transform::kCenterCrop:
      return ResizingByCrop(spec, *transform.mutable_center_crop(), dataset);
    case v1::Transform::kResizeWithPad: {
      Resizing resizing = ResizingBy(transform.resize_with_pad());
      resizing.keeps_aspect = true;
      return resizing;
    }
    default:
      SYSTOLE_CHECK(transform.has_resize());
      return ResizingBy(transform.resize());
  }
}

// The feed of a row of the table, and what the row's ceiling needs.
class Feed {
 public:
  explicit Feed(const BreadthRow& row)
      : row_(row),
        shards_(ShardsNamed(row.corpus)),
        dataset_(OpenShards(row.corpus, shards_)),
        plan_(PlanOf(row.spec, dataset_)),
        slices_(plan_->layout().useful_bytes() / row.spec.global_batch(), row.spec.global_batch(),
                /*kept=*/row.ceiling == BreadthRow::Ceiling::kCopy) {
    if (row.ceiling == BreadthRow::Ceiling::kCopy) bare_.resize(num_examples());
    if (row.ceiling == BreadthRow::Ceiling::kDecode) FindBareExamples();
    if (row.spec.outputs(0).cache() != v1::NONE) cache_ = MakeCache();
    RunPipeline();  // Allocates the engine's buffers and fills the cache.
  }

  // Makes the steps of the row's epochs and drops each slice as it comes.
  Sample RunPipeline() {
    return Measure(static_cast<double>(num_examples()), [&] {
      absl::StatusOr<std::unique_ptr<StepStream>> stream =
          engine_.Open(plan_, {.count = num_steps()}, {}, "", cache_);
      SYSTOLE_CHECK(stream.ok());
      for (int64_t step = 0; step < num_steps(); ++step) {
        const StepStream::Result slice = (*stream)->Next();
        SYSTOLE_CHECK(slice.ok() && slice->has_value());
      }
    });
  }

  Sample RunCeiling() {
    if (row_.ceiling == BreadthRow::Ceiling::kScan) {
      return ScanBare(shards_, row_.epochs, slices_, kThreads);
    }
    return RunBare(bare_, slices_, kThreads);
  }

 private:
  int64_t num_steps() const { return row_.epochs * plan_->order().steps_per_epoch(); }
  size_t num_examples() const {
    return static_cast<size_t>(num_steps() * row_.spec.global_batch());
  }

  // A cache with 1 MiB for each image. This is enough for all decoded images, or for all finished
  // images.
  std::shared_ptr<ValueCache> MakeCache() const {
    absl::StatusOr<std::unique_ptr<ValueCache>> cache =
        ValueCache::Create({.memory_bytes = dataset_->num_records() << 20});
    SYSTOLE_CHECK(cache.ok());
    return *std::move(cache);
  }

  // Fills bare_ with the examples of the row's epochs, in order.
  void FindBareExamples() {
    files_ = FilesOf(*dataset_);
    const Resizing resizing = ResizingOf(row_.spec, dataset_);
    const bool is_png = row_.spec.outputs(0).transforms(0).has_decode_png();
    for (int64_t step = 0; step < num_steps(); ++step) {
      for (int64_t slot = 0; slot < row_.spec.global_batch(); ++slot) {
        const Place place = plan_->order().PlaceOf(step, slot);
        const std::string& file = files_[static_cast<size_t>(*place.record)];
        const std::optional<ImageSize> size = SizeOfImage(file);
        SYSTOLE_CHECK(size.has_value());
        CropRect rect = WholeImage(size->height, size->width);
        if (resizing.windows != nullptr) {
          const absl::StatusOr<ImageWindow> window =
              WindowOf(resizing.windows->outputs()[0].program.moves, size->height, size->width,
                       {.seed = row_.spec.seed(), .epoch = place.pass, .record = *place.record});
          SYSTOLE_CHECK(window.ok());
          rect = window->rect;
        }
        const ImageSize cut = {.height = rect.height, .width = rect.width};
        BareExample example = {.passes = PassesOf(resizing.options, cut, resizing.OutputOf(cut))};
        example.passes.push_back({.rows = resizing.size.height,
                                  .row_values = int64_t{resizing.size.width} * 3,
                                  .taps = static_cast<double>(row_.value_steps)});
        (is_png ? example.png : example.jpeg) = file;
        example.rect = rect;
        bare_.push_back(std::move(example));
      }
    }
  }

  const BreadthRow& row_;
  const std::vector<std::string> shards_;
  const std::shared_ptr<const Dataset> dataset_;
  const std::shared_ptr<const FeedPlan> plan_;
  SliceStore slices_;
  std::vector<std::string> files_;  // By record.
  std::vector<BareExample> bare_;
  StepEngine engine_ = StepEngine({.threads = kThreads});
  std::shared_ptr<ValueCache> cache_;
};

const char* CeilingOf(const BreadthRow& row) {
  switch (row.ceiling) {
    case BreadthRow::Ceiling::kCopy:
      return "memcpy of the finished examples";
    case BreadthRow::Ceiling::kScan:
      return "scan of the shards with checksums, memcpy";
    case BreadthRow::Ceiling::kDecode:
      break;
  }
  return row.spec.outputs(0).transforms(0).has_decode_png()
             ? "ISA-L inflates, products and sums, memcpy"
             : "bare libjpeg-turbo, products and sums, memcpy";
}

void RunRow(benchmark::State& state, const BreadthRow& row) {
  Feed feed(row);
  for (auto _ : state) {
    const auto samples =
        TakeTurns({[&] { return feed.RunPipeline(); }, [&] { return feed.RunCeiling(); }});
    ReportRow(
        state, "of_ceiling",
        {.figure = row.figure, .ceiling = CeilingOf(row), .unit = row.unit, .wanted = row.wanted},
        samples[0], samples[1]);
  }
}

}  // namespace
}  // namespace systole::bench

int main(int argc, char** argv) {
  systole::KeepFreedMemory();  // As the server does.
  const std::vector<systole::bench::BreadthRow> rows = systole::bench::BreadthRows();
  for (const systole::bench::BreadthRow& row : rows) {
    benchmark::RegisterBenchmark(
        ("BM_Breadth/" + row.name).c_str(),
        [&row](benchmark::State& state) { systole::bench::RunRow(state, row); })
        ->Iterations(1)
        ->Unit(benchmark::kSecond);
  }
  return systole::bench::RunBenchmarks(argc, argv);
}
