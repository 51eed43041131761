"""What an operator watches: `/metrics` in the text form of Prometheus."""

from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from ebnet.serve.budget import Budget


class Metrics:
    """The figures of one application."""

    def __init__(self, places: Budget, bodies: Budget, pixels: Budget) -> None:
        registry = self._registry = CollectorRegistry()
        self.requests = Counter("ebnet_requests", "Answered requests for a prediction.", ["status"], registry=registry)
        self.seconds = Histogram(
            "ebnet_request_seconds",
            "From the first byte of a request for a prediction to its answer.",
            registry=registry,
            buckets=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10),
        )
        for name, meaning, value in (
            ("ebnet_at_work", "Images being decoded or classified.", lambda: places.taken),
            ("ebnet_waiting", "Images that wait for a place or for memory.", lambda: places.waiting + pixels.waiting),
            ("ebnet_body_bytes", "Bytes of received images that are held.", lambda: bodies.taken),
            ("ebnet_decoding_bytes", "Bytes that decoding may take at this moment.", lambda: pixels.taken),
        ):
            Gauge(name, meaning, registry=registry).set_function(value)

    def page(self) -> Response:
        return Response(generate_latest(self._registry), media_type=CONTENT_TYPE_LATEST)
