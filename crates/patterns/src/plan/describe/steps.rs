//! The plans of a session and what became of their steps.

use crate::plan::PlannedStep;
use std::collections::BTreeMap;
use trellis_provenance::iri;

/// Every step that was ever planned.
#[derive(Debug, Default)]
pub(super) struct PlannedSteps {
    /// IRI of the plan in force.
    pub(super) in_force: Option<String>,
    steps: BTreeMap<u32, PlannedNode>,
}

/// A step, and whether a node tells what became of it.
#[derive(Debug)]
pub(super) struct PlannedNode {
    pub(super) step: PlannedStep,
    /// IRI of the plan that the step belongs to.
    pub(super) plan: String,
    /// Whether the plan says so: a step can have a result that nobody planned.
    is_planned: bool,
    is_done: bool,
    is_superseded: bool,
}

impl PlannedSteps {
    /// Puts a plan in force: its steps are numbered on from the highest number so far. Gives back the numbers of
    /// the steps that it replaces.
    pub(super) fn put_in_force(&mut self, plan: &str, steps: &[PlannedStep]) -> Vec<u32> {
        let mut superseded = Vec::new();
        for (number, node) in self.steps.iter_mut().filter(|(_, node)| !node.is_done && !node.is_superseded) {
            node.is_superseded = true;
            superseded.push(*number);
        }
        let first = self.steps.last_key_value().map_or(0, |(number, _)| number + 1);
        for (number, step) in (first..).zip(steps) {
            let (step, plan) = (step.clone(), plan.to_owned());
            let node = PlannedNode { step, plan, is_planned: true, is_done: false, is_superseded: false };
            self.steps.insert(number, node);
        }
        self.in_force = Some(plan.to_owned());
        superseded
    }

    pub(super) fn step(&self, number: u32) -> Option<&PlannedNode> {
        self.steps.get(&number)
    }

    /// The steps that a plan brought, with their numbers.
    pub(super) fn brought_by(&self, plan: &str) -> impl Iterator<Item = (u32, &PlannedNode)> {
        let planned = self.steps.iter().filter(move |(_, node)| node.is_planned && node.plan == plan);
        planned.map(|(number, node)| (*number, node))
    }

    /// IRI of the node that tells what was planned.
    pub(super) fn planned_iri(&self, number: u32) -> Option<String> {
        let node = self.steps.get(&number).filter(|node| node.is_planned)?;
        Some(iri::planned_step(&node.plan, number))
    }

    pub(super) fn goal(&self, number: u32) -> &str {
        self.steps.get(&number).map_or("", |node| &node.step.goal)
    }

    pub(super) fn is_done(&self, number: u32) -> bool {
        self.steps.get(&number).is_some_and(|node| node.is_done)
    }

    /// A step that others have planned anew already.
    pub(super) fn set_aside(&mut self, number: u32) {
        if let Some(node) = self.steps.get_mut(&number) {
            node.is_superseded = true;
        }
    }

    /// A node tells of the step now.
    pub(super) fn finish(&mut self, number: u32) {
        let plan = self.in_force.clone().unwrap_or_default();
        let unplanned =
            PlannedNode { step: PlannedStep::default(), plan, is_planned: false, is_done: false, is_superseded: false };
        self.steps.entry(number).or_insert(unplanned).is_done = true;
    }

    /// The steps that nodes tell of, in plan order.
    pub(super) fn done(&self) -> impl DoubleEndedIterator<Item = u32> {
        self.steps.iter().filter(|(_, node)| node.is_done).map(|(number, _)| *number)
    }

    /// The plan in force, if no node tells of any step of it.
    pub(super) fn without_steps(&self) -> Option<&str> {
        let plan = self.in_force.as_deref()?;
        (!self.steps.values().any(|node| node.is_done && node.plan == plan)).then_some(plan)
    }
}
