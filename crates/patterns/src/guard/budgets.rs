//! Calls that the budget has no room for: they are not made, and that is on record like what came of any other.

use super::{Asker, Call};
use crate::contract::{Effect, PromptOrder};
use crate::reader::ReplyForm;
use crate::registry::form;
use crate::session::Session;
use crate::spending;

/// The question, or that it is not asked.
pub(super) fn affordable(session: &Session, order: Box<PromptOrder>, asker: Asker) -> Effect {
    match reached(session, form(&order.reader), asker) {
        None => Effect::AskModel(order),
        Some(reason) => Effect::Decline { prompt: order.id, offered: order.offered, reason },
    }
}

/// The call, or that it is not made: tools ask models, too.
pub(super) fn affordable_call(session: &Session, call: Call, asker: Asker) -> Result<Call, Effect> {
    let asks = call.item.kind.asks_a_model();
    match reached(session, ReplyForm::Whole, asker).filter(|_| asks) {
        None => Ok(call),
        Some(reason) => Err(Effect::Report { error: reason }),
    }
}

/// What was begun is not called off.
fn reached(session: &Session, form: ReplyForm, asker: Asker) -> Option<String> {
    let is_new = asker == Asker::NewHand;
    is_new.then(|| spending::reached(session, form).into_iter().next()).flatten()
}
