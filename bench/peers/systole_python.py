"""Systole from Python: systole.LocalFeed over the shards or, with --server, systole.Feed."""

import systole

import measuring


def _spec(options):
    normalize = {"mean": [measuring.MEAN], "stddev": [measuring.STDDEV]}
    image = systole.Image(
        "image",
        random_resized_crop=(measuring.SIZE, measuring.SIZE),
        flip=True,
        normalize=normalize,
        dtype={"f32": "float32", "bf16": "bfloat16"}[options.dtype],
    )
    return systole.FeedSpec(
        dataset="photographs",
        seed=7,
        shuffle=systole.Shuffle("global"),
        global_batch=options.batch,
        num_cores=options.cores,
        outputs={"image": image, "label": systole.Output(feature="label", dtype="int64")},
    )


def _without_end(feed):
    while True:
        for batch in feed:
            # A training step gets this array. The array is dropped before the next batch is taken,
            # so the feed can use the array's memory again, as in feed_timer.
            image = batch["image"]
            del batch
            yield image
            del image


def main():
    options = measuring.arguments(__doc__, server={"default": ""},
                                  cores={"type": int, "default": 1})
    spec = _spec(options)
    if options.server:
        feed = systole.Feed(options.server, spec)
    else:
        feed = systole.LocalFeed(options.files, spec, threads=options.threads)
    with feed:
        measuring.report("systole from Python", systole.__version__,
                         {"threads": options.threads, "server": options.server},
                         _without_end(feed), options,
                         lambda: {"shared_bytes": feed.stats()["shared_payload_bytes"],
                                  "compact_steps": feed.stats()["compact_steps"]})


if __name__ == "__main__":
    main()
