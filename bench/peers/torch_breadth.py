"""DataLoader and torchvision's v2 transforms for the pipelines of bench/breadth_rows.cc, by name.
The loader is set up as in torch_loader.py. The transforms have their defaults, so they antialias.

A pipeline is left out if v2 has no transform for it, or if it needs a tf.train.Example reader in
Python."""

import measuring
import torch
import torch_loader
import torchvision
from torchvision.io import ImageReadMode, decode_jpeg, decode_png
from torchvision.transforms import v2

_SIZE = measuring.SIZE
_CLASSES = 1000


def _jpeg(encoded):
    return decode_jpeg(encoded, mode=ImageReadMode.RGB)


def _png(encoded):
    return decode_png(encoded, mode=ImageReadMode.RGB)


def _raw(encoded):
    return encoded.reshape(32, 32, 3).permute(2, 0, 1)


def _crop():
    return v2.RandomResizedCrop(_SIZE, scale=measuring.AREA, ratio=measuring.ASPECT)


def _to_unit():
    return v2.ToDtype(torch.float32, scale=True)


def _normalize():
    return v2.Compose([_to_unit(), v2.Normalize(measuring.CHANNEL_MEAN, measuring.CHANNEL_STDDEV)])


def _flip():
    return v2.RandomHorizontalFlip()


def _colours():
    return v2.ColorJitter(brightness=0.125, contrast=(0.5, 1.5), saturation=(0.5, 1.5), hue=0.2)


# How the bytes of an image are decoded, and the transforms after that.
IMAGES = {
    "crop_antialias": (_jpeg, lambda: [_crop(), _flip(), _normalize()]),
    "center_crop_antialias": (
        _jpeg,
        lambda: [v2.Resize(_SIZE * 8 // 7), v2.CenterCrop(_SIZE), _normalize()],
    ),
    "resize": (_jpeg, lambda: [v2.Resize((_SIZE, _SIZE)), _to_unit()]),
    "colours": (_jpeg, lambda: [_crop(), _to_unit(), _flip(), _colours()]),
    "trivial_augment": (
        _jpeg,
        lambda: [_crop(), _flip(), v2.TrivialAugmentWide(), _normalize()],
    ),
    "mix": (_jpeg, lambda: [_crop(), _flip(), _normalize()]),
    "large": (_jpeg, lambda: [_crop(), _flip(), _normalize()]),
    "png": (_png, lambda: [v2.Resize((_SIZE, _SIZE)), _flip(), _normalize()]),
    "raw": (_raw, lambda: [_flip(), v2.RandomCrop(32, padding=4), _to_unit()]),
}


class _Images(torch_loader.Records):
    def __init__(self, files, pipeline):
        super().__init__(files)
        decode, transforms = IMAGES[pipeline]
        self._decode = decode
        self._transform = v2.Compose(transforms())

    def __getitem__(self, number):
        encoded, label = self.read(number)
        encoded = torch.frombuffer(bytearray(encoded), dtype=torch.uint8)
        return self._transform(self._decode(encoded)), label


class _Mix:
    """Collates a batch and mixes it, in the worker, as torchvision's guide shows."""

    def __init__(self):
        self._mix = v2.RandomChoice(
            [v2.CutMix(num_classes=_CLASSES), v2.MixUp(num_classes=_CLASSES)]
        )

    def __call__(self, examples):
        return self._mix(*torch.utils.data.default_collate(examples))


def main():
    options = measuring.arguments(__doc__, pipeline={"choices": sorted(IMAGES), "required": True})
    loader = torch_loader.loader(
        _Images(options.files, options.pipeline),
        options,
        collate_fn=_Mix() if options.pipeline == "mix" else None,
    )
    measuring.report(
        "DataLoader + torchvision",
        f"{torch.__version__}, {torchvision.__version__}",
        f"whole image decoded, v2 transforms, CHW; {options.threads} workers",
        (images.numpy() for images, _ in loader),
        options,
    )


if __name__ == "__main__":
    main()
