//! Calls that the budget has no room for: they are not made, and that is on record like what came of any other.

use super::Asker;
use crate::contract::{Effect, PromptOrder};
use crate::reader::ReplyForm;
use crate::registry::form;
use crate::session::Session;
use crate::spending;
use trellis_domain::config::ToolItem;

/// The question, or that it is not asked.
pub(super) fn affordable(session: &Session, order: Box<PromptOrder>, asker: Asker) -> Effect {
    match reached(session, form(&order.reader), asker) {
        None => Effect::AskModel(order),
        Some(reason) => Effect::Decline { prompt: order.id, offered: order.offered, reason },
    }
}

/// The call, or that it is not made: tools ask models, too.
pub(super) fn affordable_call(session: &Session, item: &ToolItem, effect: Effect, asker: Asker) -> Effect {
    if !item.kind.asks_a_model() || !matches!(effect, Effect::CallTool { .. }) {
        return effect;
    }
    match reached(session, ReplyForm::Whole, asker) {
        None => effect,
        Some(error) => Effect::Report { error },
    }
}

/// What was begun is not called off.
fn reached(session: &Session, form: ReplyForm, asker: Asker) -> Option<String> {
    let is_new = asker == Asker::NewHand;
    is_new.then(|| spending::reached(session, form).into_iter().next()).flatten()
}
