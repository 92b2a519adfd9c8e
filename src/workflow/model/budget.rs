//! Enforces the cost limit of a session: each request is estimated before and counted after.

use std::cell::Cell;
use std::rc::Rc;

use crate::change::id::ChangeId;
use crate::config::settings::Price;
use crate::git::object::CommitId;
use crate::git::refs;
use crate::host::file::{read_regular_text, write_cache};
use crate::model::acting::agent::ActingModel;
use crate::model::{Model, ModelAnswer, ModelError, ModelRequest, TokenUsage, price};
use crate::project::Project;
use crate::session::draft::Draft;
use crate::session::turn::Turn;
use crate::workflow::change::{discarded, open_change};
use crate::workflow::model::choose::{OpenedModel, PricedModel};
use crate::workflow::user::Estimate;

const BYTES_PER_TOKEN: usize = 4;

/// Exact for counted resources, approximate for the rest. Does not tokenize.
#[derive(Debug, Clone, Copy, Default)]
pub struct TokenEstimate {
    /// In bytes, of the counted input.
    pub bytes: usize,
    pub tokens: usize,
}

impl TokenEstimate {
    /// `bytes` and `tokens` are those of the counted resources.
    pub fn of_input(input: &str, bytes: usize, tokens: usize) -> TokenEstimate {
        TokenEstimate {
            bytes: input.len(),
            tokens: tokens + input.len().saturating_sub(bytes) / BYTES_PER_TOKEN,
        }
    }

    /// With texts of this many bytes next to the input.
    pub fn with_texts(&self, bytes: usize) -> usize {
        self.tokens + bytes / BYTES_PER_TOKEN
    }

    pub fn of(&self, request: &ModelRequest) -> usize {
        let fixed = (request.system.len() + request.message.len()) / BYTES_PER_TOKEN;
        let input = if request.input.len() == self.bytes {
            self.tokens
        } else {
            request.input.len() / BYTES_PER_TOKEN
        };
        fixed + input
    }
}

/// In dollars.
#[derive(Debug)]
pub struct CostBudget {
    used: Cell<f64>,
    limit: f64,
}

impl CostBudget {
    pub fn new(used: f64, limit: f64) -> Rc<CostBudget> {
        Rc::new(CostBudget {
            used: Cell::new(used),
            limit,
        })
    }
}

/// In dollars, with the draft, and for the session of a change with its documents. Requests without
/// a known price count as free.
pub fn session_spending(project: &Project, tip: &Turn, draft: &Draft) -> anyhow::Result<f64> {
    let turns = spent_on_turns(project, tip)?;
    Ok(draft.meta.spent.unwrap_or(0.0)
        + turns
        + ChangeId::of_session(&tip.session)
            .map_or(Ok(0.0), |id| spent_on_documents(project, &id))?)
}

/// In dollars: documents and session.
pub fn spent_on_change(project: &Project, id: &ChangeId) -> anyhow::Result<f64> {
    let session = id.session();
    if !project.store().has(&session)? {
        return spent_on_documents(project, id);
    }
    let (tip, draft) = project.in_progress(&session)?;
    session_spending(project, &tip, &draft)
}

fn spent_on_documents(project: &Project, id: &ChangeId) -> anyhow::Result<f64> {
    let documents = match refs::read(&project.repository, &id.reference())? {
        Some(_) => open_change(project, id)?.state.spent_on_documents(),
        None => 0.0,
    };
    Ok(documents + discarded::read(project, id)?.dollars())
}

pub trait ActingEnv {
    /// Returns the model's changes as a plan.
    fn act(
        &self,
        model: &dyn ActingModel,
        request: &ModelRequest,
        budget: BudgetSlice<'_>,
    ) -> Result<ModelAnswer, ModelError>;
}

#[derive(Debug, Clone, Copy)]
pub struct BudgetSlice<'p> {
    /// In dollars. The model is stopped when they are used up.
    pub remaining: f64,
    /// If the model does not report its cost.
    pub price: Option<&'p Price>,
}

impl BudgetSlice<'_> {
    /// In dollars, as far as known.
    pub fn used(&self, usage: TokenUsage, reported: Option<f64>) -> f64 {
        reported.unwrap_or_else(|| price::charge(self.price, usage))
    }
}

/// Refuses requests beyond the session's cost limit.
pub struct MeteredModel<'a> {
    pub chosen: PricedModel,
    /// If the model edits files itself.
    pub env: Option<&'a dyn ActingEnv>,
    /// Shared by the requests of the turn.
    pub budget: Rc<CostBudget>,
    pub weight: TokenEstimate,
}

impl PricedModel {
    pub fn estimate(&self, tokens: usize) -> Estimate {
        match price::estimate(self.price.as_ref(), tokens, self.max_tokens.unwrap_or(0)) {
            Some((least, most)) => Estimate::Dollars(least, self.max_tokens.map(|_| most)),
            None if self.is_free => Estimate::Free,
            None => Estimate::Unknown,
        }
    }
}

impl MeteredModel<'_> {
    pub fn estimate(&self, request: &ModelRequest) -> Estimate {
        self.chosen.estimate(self.weight.of(request))
    }

    fn ask(
        &self,
        request: &ModelRequest,
        watch: &mut dyn FnMut(&str),
    ) -> Result<ModelAnswer, ModelError> {
        let (model, env) = match (&self.chosen.model, self.env) {
            (OpenedModel::Writes(model), _) => return model.answer(request, watch),
            (OpenedModel::Acts(model), Some(env)) => (model, env),
            (OpenedModel::Acts(model), None) => {
                let name = &model.agent().name;
                return Err(ModelError::Settings(format!(
                    "model `{name}` edits files itself"
                )));
            }
        };

        let slice = BudgetSlice {
            remaining: self.budget.limit - self.budget.used.get(),
            price: self.chosen.price.as_ref(),
        };
        env.act(&**model, request, slice)
    }

    /// As far as known.
    pub fn charge(&self, answer: &ModelAnswer) -> f64 {
        let price = self.chosen.price.as_ref();
        answer
            .cost
            .unwrap_or_else(|| price::charge(price, answer.usage))
    }
}

impl Model for MeteredModel<'_> {
    fn answer(
        &self,
        request: &ModelRequest,
        watch: &mut dyn FnMut(&str),
    ) -> Result<ModelAnswer, ModelError> {
        // Only the input is estimated. The length of the answer is unknown, so the last request can
        // exceed the limit.
        let CostBudget { used, limit } = &*self.budget;
        let spent = used.get();
        let (is_beyond, estimate) = match self.estimate(request) {
            Estimate::Dollars(estimate, _) => (spent + estimate > *limit, Some(estimate)),
            // An agent can report its cost afterwards.
            Estimate::Unknown if matches!(self.chosen.model, OpenedModel::Acts(_)) => {
                (spent > 0.0 && spent >= *limit, None)
            }
            Estimate::Unknown | Estimate::Free => (false, None),
        };
        if is_beyond {
            return Err(ModelError::CostLimit {
                estimate,
                session_cost: spent,
                limit: *limit,
            });
        }

        let answer = self.ask(request, watch)?;
        used.set(spent + self.charge(&answer));
        Ok(answer)
    }
}

pub const CACHE_DIR: &str = "spent";
const MAX_CACHE: u64 = 4096;

const MIN_CACHED_TURNS: usize = 8;

/// In dollars.
pub(super) fn spent_on_turns(project: &Project, tip: &Turn) -> anyhow::Result<f64> {
    let teddy_dir = project.repository.teddy_dir();
    let path = tip.session.cache_file(&teddy_dir, CACHE_DIR);
    let text = read_regular_text(&path, MAX_CACHE).unwrap_or_default();
    let noted = parse_cached_sum(&text);
    let (mut sum, mut walked) = (0.0, 0);
    for turn in project.store().history(tip.clone()) {
        let Turn { commit, meta, .. } = turn?;
        if let Some((_, before)) = noted.filter(|(turn, _)| *turn == commit) {
            sum += before;
            break;
        }
        // `spent` has discarded answers, too. Turns of earlier versions have only `cost`.
        sum += meta.spent.or_else(|| meta.model?.cost).unwrap_or(0.0);
        walked += 1;
    }

    if walked > MIN_CACHED_TURNS {
        // The cache only saves time.
        let _ = write_cache(&path, format!("{} {sum}\n", tip.commit).as_bytes());
    }
    Ok(sum)
}

fn parse_cached_sum(text: &str) -> Option<(CommitId, f64)> {
    let (turn, sum) = text.strip_suffix('\n')?.split_once(' ')?;
    let sum: f64 = sum.parse().ok()?;
    // A damaged cache must not disable the limit.
    (sum.is_finite() && sum >= 0.0).then_some((turn.parse().ok()?, sum))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::local::Replay;
    use crate::workflow::model::choose::Notes;

    fn check(price: Option<f64>, used: f64, expected: Result<&str, &str>) {
        let price = price.map(|input| Price {
            input,
            output: 0.0,
            cache_read: None,
            cache_write: None,
        });
        let model = Box::new(Replay::from_texts(vec!["hello".to_owned()]));
        let chosen = PricedModel {
            name: "m".to_owned(),
            model: OpenedModel::Writes(model),
            price,
            max_tokens: None,
            is_free: false,
            is_program: false,
            notes: Notes::default(),
        };
        let metered = MeteredModel {
            chosen,
            env: None,
            budget: CostBudget::new(used, 5.0),
            weight: TokenEstimate::of_input("abcd", 0, 0),
        };
        let request = ModelRequest {
            input: "abcd".to_owned(),
            system: "x".repeat(4_000_000 - 4),
            ..ModelRequest::default()
        };
        let answer = metered
            .answer(&request, &mut |_| ())
            .map(|answer| answer.text)
            .map_err(|error| error.to_string());
        assert_eq!(answer.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn a_call_that_may_be_paid_is_made() {
        check(Some(2.0), 2.9, Ok("hello"));
    }

    #[test]
    fn a_call_over_the_limit_is_not_made() {
        let message = "the call would cost about $2.00, $3.10 is spent, and the limit is $5.00; nothing was sent";
        check(Some(2.0), 3.1, Err(message));
    }

    #[test]
    fn what_has_no_price_has_no_limit() {
        check(None, 99.0, Ok("hello"));
    }

    #[test]
    fn an_input_weighs_what_its_resources_do_and_a_token_for_four_bytes_of_the_rest() {
        let weight = TokenEstimate::of_input("12345678rest", 8, 3);
        let request = ModelRequest {
            input: "12345678rest".to_owned(),
            message: "abcdefgh".to_owned(),
            ..ModelRequest::default()
        };
        assert_eq!(
            (weight.of(&request), weight.of(&ModelRequest::default())),
            (6, 0)
        );
    }
}

#[cfg(test)]
mod spending_tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<f64>) {
        assert_eq!(
            parse_cached_sum(text).map(|(_, sum)| sum),
            expected,
            "{text:?}"
        );
    }

    #[test]
    fn a_sum_that_is_not_whole_is_none() {
        let id = "56a6051ca2b02b04ef92d5150c9ef600403cb1de";
        check(&format!("{id} 0.125\n"), Some(0.125));
        check(&format!("{id} 0\n"), Some(0.0));
        for wrong in ["0.1", "-1\n", "inf\n", "NaN\n", "x\n", "\n"] {
            check(&format!("{id} {wrong}"), None);
        }
        check("", None);
        check("zz 1\n", None);
    }
}
