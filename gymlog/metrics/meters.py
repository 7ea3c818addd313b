"""OpenTelemetry meters that cost a process nothing at its start, and survive a fork.

Their instruments stand in front of those of OpenTelemetry's SDK, which takes 0.1 s or more to load:
it is loaded later, by the thread that collects, and what was measured until then is kept and
handed on. In a forked child they stand in front of a new SDK, which has nothing of the parent's.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from opentelemetry import context as otel_context
from opentelemetry import metrics
from opentelemetry.context.context import Context
from opentelemetry.metrics import CallbackT
from opentelemetry.util.types import Attributes

from gymlog.notices import notice

__all__ = ["LateMeterProvider"]

_MAX_KEPT: Final = 4_096
"""Measurements of an instrument that are kept; with one more, the SDK is loaded at once."""


class LateMeterProvider(metrics.MeterProvider):
    """A MeterProvider in front of the one that `build` makes when `load` is called."""

    def __init__(self, load: Callable[[], None]) -> None:
        self._load = load
        self._meters: dict[tuple[object, ...], _Meter] = {}
        self._real: metrics.MeterProvider | None = None

    @property
    def is_used(self) -> bool:
        """Whether anything was made that measures."""
        return any(meter.instruments for meter in self._meters.values())

    @property
    def is_needed(self) -> bool:
        """Whether anything was made whose measurements must not be lost."""
        return any(
            meter.instruments for meter in self._meters.values() if not meter.is_in_background
        )

    def get_meter(
        self,
        name: str,
        version: str | None = None,
        schema_url: str | None = None,
        attributes: Attributes = None,
    ) -> metrics.Meter:
        """Return a meter; one for the same arguments is the same."""
        return self._meter(name, version, schema_url, attributes, is_in_background=False)

    def background_meter(self, name: str) -> metrics.Meter:
        """Return a meter for what is of no interest in a process that ends at once."""
        return self._meter(name, None, None, None, is_in_background=True)

    def _meter(
        self,
        name: str,
        version: str | None,
        schema_url: str | None,
        attributes: Attributes,
        *,
        is_in_background: bool,
    ) -> "_Meter":
        key = (name, version, schema_url, repr(attributes))
        meter = self._meters.get(key)
        if meter is None:
            meter = _Meter(name, version, schema_url, attributes, self._load)
            meter.is_in_background = is_in_background
            meter = self._meters.setdefault(key, meter)
            meter.bind(self._real)
        return meter

    def bind(self, real: metrics.MeterProvider | None) -> None:
        """Let every instrument stand in front of one of `real`, or of none yet."""
        self._real = real
        for meter in list(self._meters.values()):
            meter.bind(real)

    def forget_kept(self) -> None:
        """Forget what was measured and not handed on (in a forked child, where it is not ours)."""
        for meter in self._meters.values():
            for instrument in meter.instruments.values():
                instrument.kept.clear()


class _Instrument:
    """An instrument in front of the one that `make` makes of a meter of the SDK."""

    def __init__(
        self,
        name: str,
        make: Callable[[metrics.Meter], Any],  # Any: an instrument of whichever kind
        method: str | None,
        load: Callable[[], None],
    ) -> None:
        self._name = name
        self._make = make
        self._method = method
        self._load = load
        self._measure: Callable[..., None] | None = None
        self.kept: deque[tuple[Any, Attributes, Context]] = deque()  # Any: int or float

    def bind(self, meter: metrics.Meter | None) -> None:
        if meter is None:
            self._measure = None
            return
        try:
            real = self._make(meter)
        except Exception as error:  # noqa: BLE001 - the SDK's word on a bad name, one for each
            notice(f"instrument {self._name}", f"metric {self._name!r} is left out: {error}")
            self._measure = _measure_nothing
            self.kept.clear()
            return
        if self._method is not None:
            self._measure = getattr(real, self._method)
            self._hand_on()

    def take(
        self, amount: float, attributes: Attributes = None, context: Context | None = None
    ) -> None:
        """Measure."""
        measure = self._measure
        if measure is not None:
            measure(amount, attributes, context)
            return
        self.kept.append((amount, attributes, context or otel_context.get_current()))
        if len(self.kept) > _MAX_KEPT:
            self._load()
        if self._measure is not None:  # since the append
            self._hand_on()

    def _hand_on(self) -> None:
        measure = self._measure
        while measure is not None:
            try:
                kept = self.kept.popleft()
            except IndexError:
                return
            measure(*kept)


def _measure_nothing(
    amount: float, attributes: Attributes = None, context: Context | None = None
) -> None:
    """Do nothing, in place of an instrument that cannot be made."""


class _Counter(_Instrument, metrics.Counter):
    add = _Instrument.take


class _UpDownCounter(_Instrument, metrics.UpDownCounter):
    add = _Instrument.take


class _Histogram(_Instrument, metrics.Histogram):
    record = _Instrument.take


class _Gauge(_Instrument, metrics._Gauge):
    set = _Instrument.take


class _ObservableCounter(_Instrument, metrics.ObservableCounter):
    pass


class _ObservableUpDownCounter(_Instrument, metrics.ObservableUpDownCounter):
    pass


class _ObservableGauge(_Instrument, metrics.ObservableGauge):
    pass


_InstrumentT = TypeVar("_InstrumentT", bound=_Instrument)


class _Meter(metrics.Meter):
    """Makes instruments; an equal one is made once."""

    is_in_background = False

    def __init__(
        self,
        name: str,
        version: str | None,
        schema_url: str | None,
        attributes: Attributes,
        load: Callable[[], None],
    ) -> None:
        super().__init__(name, version, schema_url)
        self._attributes = attributes
        self._load = load
        self._real: metrics.Meter | None = None
        self.instruments: dict[tuple[object, ...], _Instrument] = {}

    def bind(self, provider: metrics.MeterProvider | None) -> None:
        self._real = None
        if provider is not None:
            self._real = provider.get_meter(
                self.name, self.version, self.schema_url, self._attributes
            )
        for instrument in list(self.instruments.values()):
            instrument.bind(self._real)

    def create_counter(self, name: str, unit: str = "", description: str = "") -> metrics.Counter:
        return self._create(_Counter, "add", "create_counter", name, unit, description)

    def create_up_down_counter(
        self, name: str, unit: str = "", description: str = ""
    ) -> metrics.UpDownCounter:
        return self._create(
            _UpDownCounter, "add", "create_up_down_counter", name, unit, description
        )

    def create_histogram(
        self,
        name: str,
        unit: str = "",
        description: str = "",
        *,
        explicit_bucket_boundaries_advisory: Sequence[float] | None = None,
    ) -> metrics.Histogram:
        bounds = explicit_bucket_boundaries_advisory
        return self._create(
            _Histogram, "record", "create_histogram", name, unit, description,
            explicit_bucket_boundaries_advisory=None if bounds is None else tuple(bounds),
        )  # fmt: skip

    def create_gauge(self, name: str, unit: str = "", description: str = "") -> metrics._Gauge:
        return self._create(_Gauge, "set", "create_gauge", name, unit, description)

    def create_observable_counter(
        self,
        name: str,
        callbacks: Sequence[CallbackT] | None = None,
        unit: str = "",
        description: str = "",
    ) -> metrics.ObservableCounter:
        return self._create(
            _ObservableCounter, None, "create_observable_counter", name, unit, description,
            callbacks=callbacks,
        )  # fmt: skip

    def create_observable_up_down_counter(
        self,
        name: str,
        callbacks: Sequence[CallbackT] | None = None,
        unit: str = "",
        description: str = "",
    ) -> metrics.ObservableUpDownCounter:
        return self._create(
            _ObservableUpDownCounter, None, "create_observable_up_down_counter", name, unit,
            description, callbacks=callbacks,
        )  # fmt: skip

    def create_observable_gauge(
        self,
        name: str,
        callbacks: Sequence[CallbackT] | None = None,
        unit: str = "",
        description: str = "",
    ) -> metrics.ObservableGauge:
        return self._create(
            _ObservableGauge, None, "create_observable_gauge", name, unit, description,
            callbacks=callbacks,
        )  # fmt: skip

    def _create(
        self,
        kind: type[_InstrumentT],
        method: str | None,
        create: str,
        name: str,
        unit: str,
        description: str,
        **options: Any,  # Any: what one kind of instrument takes besides
    ) -> _InstrumentT:
        key = (kind, name, unit, description, options.get("explicit_bucket_boundaries_advisory"))
        present = self.instruments.get(key)
        if present is None:

            def make(meter: metrics.Meter) -> Any:  # Any: an instrument of whichever kind
                named = {"name": name, "unit": unit, "description": description}
                return getattr(meter, create)(**named, **options)

            present = self.instruments.setdefault(key, kind(name, make, method, self._load))
            present.bind(self._real)
        assert isinstance(present, kind)
        return present
