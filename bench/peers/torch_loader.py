"""PyTorch's DataLoader: worker processes, a map-style dataset, and torchvision's v2 transforms.

--decoder torchvision: decode_jpeg, then transforms on uint8 tensors, as torchvision's "Performance
considerations" advise. --decoder pillow: Pillow images, as in PyTorch's ImageNet example."""

import io
import os

import numpy as np
import PIL
import PIL.Image
import torch
import torchvision
from torchvision.io import ImageReadMode, decode_jpeg
from torchvision.transforms import v2

import measuring
import records


class Records(torch.utils.data.Dataset):
    """Reads images straight out of the TFRecord shards, by an index made beforehand."""

    def __init__(self, files):
        self._files = files
        self._descriptors = None  # Opened by each worker.
        self._places = np.array([(number, *place) for number, file in enumerate(files)
                                 for place in records.images(file)])

    def __len__(self):
        return len(self._places)

    def read(self, number):
        """The bytes of image `number`, and its label."""
        if self._descriptors is None:
            self._descriptors = [os.open(file, os.O_RDONLY) for file in self._files]
        file, offset, size, label = self._places[number]
        return os.pread(self._descriptors[file], int(size), int(offset)), int(label)


class _Photographs(Records):
    def __init__(self, files, decoder):
        super().__init__(files)
        self._decoder = decoder
        crop = v2.RandomResizedCrop(measuring.SIZE, scale=measuring.AREA, ratio=measuring.ASPECT,
                                    antialias=False)
        to_float = [
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize([measuring.MEAN / 255] * 3, [measuring.STDDEV / 255] * 3),
        ]
        to_tensor = [v2.PILToTensor()] if decoder == "pillow" else []
        self._transform = v2.Compose([crop, v2.RandomHorizontalFlip(), *to_tensor, *to_float])

    def __getitem__(self, number):
        jpeg, label = self.read(number)
        if self._decoder == "pillow":
            image = PIL.Image.open(io.BytesIO(jpeg)).convert("RGB")
        else:
            image = decode_jpeg(torch.frombuffer(bytearray(jpeg), dtype=torch.uint8),
                                mode=ImageReadMode.RGB)
        return self._transform(image), label


def loader(dataset, options, collate_fn=None):
    # More batches than are measured: the workers must not run out of batches before the clock
    # stops, and measuring.report() looks at some batches after that.
    total = (options.warm_up + options.steps + 64) * options.batch
    return torch.utils.data.DataLoader(
        dataset,
        batch_size=options.batch,
        sampler=torch.utils.data.RandomSampler(dataset, num_samples=total),
        num_workers=options.threads,
        collate_fn=collate_fn,
        drop_last=True)


def main():
    options = measuring.arguments(
        __doc__, decoder={"choices": ("torchvision", "pillow"), "required": True})
    if options.dtype != "f32":
        raise SystemExit("numpy has no bfloat16")
    dataset = _Photographs(options.files, options.decoder)
    version = f"{torch.__version__}, {torchvision.__version__}"
    if options.decoder == "pillow":
        version += f", Pillow {PIL.__version__}"
    measuring.report(f"DataLoader + {options.decoder}", version,
                     f"whole image decoded, v2 transforms, CHW; {options.threads} workers",
                     (images.numpy() for images, _ in loader(dataset, options)), options)


if __name__ == "__main__":
    main()
