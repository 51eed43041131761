"""Data sets, transforms and the loader. Importing this needs no torch; only iterating a `Loader` does.

    from ebnet.data import CentreCrop, Loader, Normalise, PadCrop, RandomResizedCrop, open_dataset

    data = open_dataset("mnist5k", split="train")          # open_dataset(name, root=None, split="train" | "val")
    data.classes, data.num_classes, data.channels, len(data)
    data.label(i), data.image(i)                           # int, uint8 [height, width, channels]
    data.labels                                            # int64 [len(data)]
    data.statistics.mean, data.statistics.std              # per channel, for Normalise
    data = data.in_memory(64, workers=2)                   # decode once to 64x64: folders and shards of small pictures
                                                           # (sets that are arrays already return themselves)

    transform = RandomResizedCrop(64)                      # scale=(0.08, 1), ratio=(3/4, 4/3), flip=True
    transform = PadCrop(28, padding=2, flip=False)         # small pictures
    transform = CentreCrop(224, resize=256)                # test time; CentreCrop(28) keeps 28x28 pictures as they are

    loader = Loader(data, transform, batch_size=128, seed=0, shuffle=True, workers=0, rank=0, world_size=1,
                    drop_last=True, normalise=Normalise(data.statistics.mean, data.statistics.std))
    len(loader)                                            # batches in an epoch, the same on every rank
    for images, labels in loader.epoch(3, start_batch=17): # float32 [n, c, size, size], int64 [n]; torch tensors
        ...

`batch_size` is that of the whole job; each rank gets its contiguous part of every batch. Order and augmentation derive
from (seed, epoch, index): starting at a later batch, with other workers or other ranks, gives exactly the same batches.
Whatever is wrong with the files is a `DataError` that names the file.
"""

from ebnet.data.catalogue import data_home, open_dataset
from ebnet.data.dataset import ArrayDataset, Dataset, Split, Statistics
from ebnet.data.generated import open_generated
from ebnet.data.loader import Loader
from ebnet.data.transforms import CentreCrop, Normalise, PadCrop, RandomResizedCrop, Transform

__all__ = [
    "ArrayDataset",
    "CentreCrop",
    "Dataset",
    "Loader",
    "Normalise",
    "PadCrop",
    "RandomResizedCrop",
    "Split",
    "Statistics",
    "Transform",
    "data_home",
    "open_dataset",
    "open_generated",
]
