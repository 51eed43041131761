"""Settings that make runs of a recipe on folders take seconds: generated images of 8 pixels, one epoch."""

ONE_EPOCH_OF_STRIPES = (
    "data.name=generated",
    "data.size=8",
    "data.resize=8",
    "data.memory_side=8",
    "data.padding=1",
    "schedule.epochs=1",
    "schedule.batch_size=500",
)
