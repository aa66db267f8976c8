"""The memory and the context that models are planned for, and those of the loaded one."""

from collections.abc import Callable

from app.state.candidate_flow import Limits, Send
from app.state.settings import SettingsState
from runtime.protocol.messages import (
    AnyCommand,
    BudgetsSet,
    PlanBudgets,
    PlanModel,
    Reply,
    SetBudgets,
)
from runtime.protocol.model import LoadedModel
from runtime.protocol.plan import PlacementPlan, PlanKind
from runtime.protocol.values import Budgets


class ModelBudgets:
    """Keeps budgets and context in the settings, and changes those of the loaded model.

    ``loaded`` returns the model that can be changed; ``changed`` is told of other limits for
    plans, ``taken`` of budgets that are in force in the loaded model.
    """

    def __init__(
        self,
        send: Send,
        settings: SettingsState,
        *,
        loaded: Callable[[], LoadedModel | None],
        changed: Callable[[], None],
        taken: Callable[[BudgetsSet], None],
    ) -> None:
        self._send = send
        self._settings = settings
        self._loaded = loaded
        self._changed = changed
        self._taken = taken

    @property
    def ram_bytes(self) -> int | None:
        """The person's RAM budget; None lets the planner choose."""
        return self._settings.values.ram_budget_bytes

    @property
    def vram_bytes(self) -> dict[str, int]:
        """The person's VRAM budgets by device; of one that is not named the planner chooses."""
        return self._settings.values.vram_budget_bytes

    @property
    def context_tokens(self) -> int:
        """The person's context; 0 lets the planner choose."""
        return self._settings.values.context_tokens

    def limits(self) -> Limits:
        """Return the budgets and the context that plans are made for."""
        budgets = Budgets(ram_bytes=self.ram_bytes, vram_bytes=self.vram_bytes)
        return Limits(budgets, self.context_tokens)

    def set_ram(self, ram_bytes: int | None) -> None:
        """Plan under another RAM budget; None lets the planner choose."""
        self._settings.change(ram_budget_bytes=ram_bytes)
        self._changed()

    def set_vram(self, device: str, vram_bytes: int | None) -> None:
        """Plan under another VRAM budget of a device; None lets the planner choose."""
        budgets = {**self.vram_bytes}
        budgets.pop(device, None)
        if vram_bytes is not None:
            budgets[device] = vram_bytes
        self._settings.change(vram_budget_bytes=budgets)
        self._changed()

    def set_context(self, context_tokens: int) -> None:
        """Plan for another context; 0 lets the planner choose."""
        self._settings.change(context_tokens=context_tokens)
        self._changed()

    def plan_loaded(self, budgets: Budgets, listener: Callable[[Reply], None]) -> bool:
        """Plan the loaded model under other budgets, for a preview; False if that is not possible.

        The listener gets ``ModelPlanned`` or ``CommandFailed``, or nothing if the runtime ends.
        """
        return self._ask_of_loaded(
            lambda request_id, loaded: PlanModel(
                request_id=request_id,
                folder=loaded.folder,
                budgets=budgets,
                context_tokens=loaded.context_tokens,
            ),
            listener,
        )

    def curve_of_loaded(self, kind: PlanKind, listener: Callable[[Reply], None]) -> bool:
        """Ask what the loaded model would do under many budgets; False if not possible.

        The listener gets ``BudgetsPlanned`` or ``CommandFailed``, or nothing if the runtime ends.
        """
        return self._ask_of_loaded(
            lambda request_id, loaded: PlanBudgets(
                request_id=request_id,
                folder=loaded.folder,
                kind=kind,
                context_tokens=loaded.context_tokens,
            ),
            listener,
        )

    def change_loaded(self, budgets: Budgets, listener: Callable[[Reply], None]) -> bool:
        """Change the budgets of the loaded model, also while it answers; False if not possible.

        The listener gets ``BudgetsSet``, when the model and its plan here are the new ones, or
        ``CommandFailed``, after which all is as before.
        """

        def on_reply(event: Reply) -> None:
            if isinstance(event, BudgetsSet) and self._loaded() is not None:
                self._settings.change(
                    ram_budget_bytes=budgets.ram_bytes,
                    vram_budget_bytes=vram_in_force(budgets, event.plan),
                )
                self._taken(event)
            listener(event)

        return self._ask_of_loaded(
            lambda request_id, _: SetBudgets(request_id=request_id, budgets=budgets), on_reply
        )

    def _ask_of_loaded(
        self, make: Callable[[int, LoadedModel], AnyCommand], listener: Callable[[Reply], None]
    ) -> bool:
        """Send a command about the loaded model; False without one, or if nobody listens."""
        loaded = self._loaded()
        if loaded is None:
            return False
        return self._send(lambda request_id: make(request_id, loaded), listener) is not None


def vram_in_force(asked: Budgets, plan: PlacementPlan) -> dict[str, int]:
    """Return the VRAM budgets that were asked for, with what the model keeps above them."""
    return {
        device: max(num_bytes, plan.budgets.vram_bytes.get(device, 0))
        for device, num_bytes in asked.vram_bytes.items()
    }
