//! The operation that is meant, its fragments, and its variables with their values.

use super::{GraphqlError, GraphqlRequest};
use graphql_parser::query::{
    Definition, Directive, Document, FragmentDefinition, OperationDefinition, SelectionSet, Value as Written,
    VariableDefinition,
};
use serde_json::{Map, Number, Value};
use std::collections::BTreeMap;

/// Fields, fragments and values that are looked at for one query, fragments as often as they are used.
const MOST_STEPS: usize = 2_000;

pub(super) struct Operation<'a> {
    pub(super) selection: &'a SelectionSet<'a, String>,
    pub(super) fragments: BTreeMap<&'a str, &'a FragmentDefinition<'a, String>>,
    variables: Map<String, Value>,
    /// Names of all variables that may be used.
    declared: Vec<&'a str>,
    steps: std::cell::Cell<usize>,
}

impl<'a> Operation<'a> {
    pub(super) fn find(document: &'a Document<'a, String>, request: &GraphqlRequest) -> Result<Self, GraphqlError> {
        let mut fragments = BTreeMap::new();
        let mut operations = Vec::new();
        for definition in &document.definitions {
            match definition {
                Definition::Fragment(fragment) => {
                    if fragments.insert(fragment.name.as_str(), fragment).is_some() {
                        let name = &fragment.name;
                        return Err(GraphqlError::at(fragment.position, format!("a second fragment `{name}`")));
                    }
                }
                Definition::Operation(operation) => operations.push(operation),
            }
        }
        let wanted = request.operation.as_deref().filter(|name| !name.is_empty());
        let is_wanted = |operation: &&OperationDefinition<'a, String>| {
            wanted.is_none_or(|wanted| name(operation).is_some_and(|name| name == wanted))
        };
        let mut found = operations.iter().copied().filter(|operation| is_wanted(operation));
        let operation = match (found.next(), found.next(), wanted) {
            (Some(operation), None, _) => operation,
            (None, _, Some(wanted)) => {
                return Err(GraphqlError::new(format!("there is no operation `{wanted}`")));
            }
            (None, _, None) => return Err(GraphqlError::new("there is no operation; write { table { field } }")),
            (Some(_), Some(_), _) => {
                return Err(GraphqlError::new("there are several operations; name one of them"));
            }
        };
        let (selection, definitions) = match operation {
            OperationDefinition::SelectionSet(selection) => (selection, &[][..]),
            OperationDefinition::Query(query) => (&query.selection_set, &query.variable_definitions[..]),
            OperationDefinition::Mutation(_) | OperationDefinition::Subscription(_) => {
                return Err(GraphqlError::new("only queries are answered: tables are read here, not changed"));
            }
        };
        let variables = variables(definitions, &request.variables);
        let declared = definitions.iter().map(|definition| definition.name.as_str()).collect();
        Ok(Self { selection, fragments, variables, declared, steps: std::cell::Cell::new(0) })
    }

    /// Counts what is looked at: fragments of fragments are many soon.
    pub(super) fn step(&self) -> Result<(), GraphqlError> {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() > MOST_STEPS {
            return Err(GraphqlError::new(format!("the query has more than {MOST_STEPS} fields and values")));
        }
        Ok(())
    }

    /// A value with its variables filled in. Null stands for one that nobody gave.
    pub(super) fn value(&self, written: &Written<'_, String>) -> Result<Value, GraphqlError> {
        self.step()?;
        Ok(match written {
            Written::Variable(name) if !self.declared.contains(&name.as_str()) => {
                return Err(GraphqlError::new(format!("the variable `${name}` is not defined")));
            }
            Written::Variable(name) => self.variables.get(name).cloned().unwrap_or(Value::Null),
            Written::Int(number) => number.as_i64().map_or(Value::Null, Value::from),
            Written::Float(number) => Number::from_f64(*number).map_or(Value::Null, Value::Number),
            Written::String(text) | Written::Enum(text) => Value::String(text.clone()),
            Written::Boolean(truth) => Value::Bool(*truth),
            Written::Null => Value::Null,
            Written::List(values) => {
                values.iter().map(|value| self.value(value)).collect::<Result<Vec<_>, _>>()?.into()
            }
            Written::Object(members) => {
                let members = members.iter().map(|(name, value)| Ok((name.clone(), self.value(value)?)));
                members.collect::<Result<Map<_, _>, GraphqlError>>()?.into()
            }
        })
    }

    /// Whether directives leave a selection in.
    pub(super) fn is_included(&self, directives: &[Directive<'_, String>]) -> Result<bool, GraphqlError> {
        for directive in directives {
            let wrong = |what: &str| GraphqlError::at(directive.position, format!("@{}: {what}", directive.name));
            let keeps = match directive.name.as_str() {
                "include" => true,
                "skip" => false,
                _ => return Err(wrong("is not known here; use @include or @skip")),
            };
            let condition = directive.arguments.iter().find(|(name, _)| name == "if").map(|(_, value)| value);
            let condition = condition.ok_or_else(|| wrong("needs `if`"))?;
            let condition = match self.value(condition)? {
                Value::Bool(condition) => condition,
                Value::String(text) if text == "true" => true,
                Value::String(text) if text == "false" => false,
                Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                    return Err(wrong("`if` is no truth value"));
                }
            };
            if condition != keeps {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn name<'a>(operation: &'a OperationDefinition<'_, String>) -> Option<&'a str> {
    match operation {
        OperationDefinition::SelectionSet(_) => None,
        OperationDefinition::Query(query) => query.name.as_deref(),
        OperationDefinition::Mutation(mutation) => mutation.name.as_deref(),
        OperationDefinition::Subscription(subscription) => subscription.name.as_deref(),
    }
}

/// What was given, and defaults where nothing was.
fn variables(definitions: &[VariableDefinition<'_, String>], given: &Map<String, Value>) -> Map<String, Value> {
    let value = |definition: &VariableDefinition<'_, String>| {
        let default = || definition.default_value.as_ref().map(constant);
        given.get(&definition.name).cloned().or_else(default)
    };
    let named = definitions.iter().filter_map(|definition| Some((definition.name.clone(), value(definition)?)));
    named.collect()
}

fn constant(written: &Written<'_, String>) -> Value {
    match written {
        Written::Int(number) => number.as_i64().map_or(Value::Null, Value::from),
        Written::Float(number) => Number::from_f64(*number).map_or(Value::Null, Value::Number),
        Written::String(text) | Written::Enum(text) => Value::String(text.clone()),
        Written::Boolean(truth) => Value::Bool(*truth),
        Written::List(values) => values.iter().map(constant).collect(),
        Written::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), constant(value))).collect::<Map<_, _>>().into()
        }
        Written::Null | Written::Variable(_) => Value::Null,
    }
}
