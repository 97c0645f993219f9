//! The members of a request, read with errors that name what is wrong.

use crate::error::ServiceError;
use serde_json::{Map, Value};
use trellis_domain::config::StoredItem;

/// Null counts as absent, and `batch_size` is read as `batch-size`: both spellings are in use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Members<'a>(&'a Map<String, Value>);

impl<'a> Members<'a> {
    pub(crate) fn new(members: &'a Map<String, Value>) -> Self {
        Self(members)
    }

    pub(crate) fn value(self, name: &str) -> Option<&'a Value> {
        let found = self.0.get(name).or_else(|| self.0.get(&name.replace('-', "_")));
        found.filter(|value| !value.is_null())
    }

    /// What is to be done.
    pub(crate) fn operation(self) -> Result<&'a str, ServiceError> {
        self.text("operation")?.filter(|name| !name.is_empty()).ok_or_else(ServiceError::missing_operation)
    }

    pub(crate) fn text(self, name: &str) -> Result<Option<&'a str>, ServiceError> {
        self.value(name).map(|value| value.as_str().ok_or_else(|| wrong(name, "a text", value))).transpose()
    }

    /// A text that must be there and say something.
    pub(crate) fn required(self, name: &str) -> Result<&'a str, ServiceError> {
        let given = self.text(name)?.filter(|text| !text.is_empty());
        given.ok_or_else(|| ServiceError::request(format!("the member `{name}` is missing; it must be a text")))
    }

    pub(crate) fn flag(self, name: &str) -> Result<bool, ServiceError> {
        let flag = self.value(name).map(|value| value.as_bool().ok_or_else(|| wrong(name, "true or false", value)));
        Ok(flag.transpose()?.unwrap_or(false))
    }

    pub(crate) fn count(self, name: &str) -> Result<Option<u64>, ServiceError> {
        let expected = "a whole number that is not negative";
        self.value(name).map(|value| value.as_u64().ok_or_else(|| wrong(name, expected, value))).transpose()
    }

    pub(crate) fn list(self, name: &str) -> Result<&'a [Value], ServiceError> {
        let list = self.value(name).map(|value| value.as_array().ok_or_else(|| wrong(name, "a list", value)));
        Ok(list.transpose()?.map_or(&[], Vec::as_slice))
    }

    /// A list of texts, if there is one.
    pub(crate) fn texts(self, name: &str) -> Result<Option<Vec<String>>, ServiceError> {
        if self.value(name).is_none() {
            return Ok(None);
        }
        let text =
            |value: &Value| value.as_str().map(str::to_owned).ok_or_else(|| wrong(name, "a list of texts", value));
        self.list(name)?.iter().map(text).collect::<Result<_, _>>().map(Some)
    }

    /// A list of objects.
    pub(crate) fn objects(self, name: &str) -> Result<Vec<Members<'a>>, ServiceError> {
        let object =
            |value: &'a Value| value.as_object().map(Members).ok_or_else(|| wrong(name, "a list of objects", value));
        self.list(name)?.iter().map(object).collect()
    }

    /// A list of configuration items.
    pub(crate) fn items(self, name: &str) -> Result<Vec<StoredItem>, ServiceError> {
        let item = |members: Members<'_>| {
            let (kind, key) = (members.required("type")?.to_owned(), members.required("key")?.to_owned());
            let missing = || ServiceError::request(format!("the value of {kind}/{key} is missing; it must be a text"));
            let value = members.text("value")?.ok_or_else(missing)?.to_owned();
            Ok(StoredItem { kind, key, value })
        };
        self.objects(name)?.into_iter().map(item).collect()
    }

    pub(crate) fn object(self, name: &str) -> Result<Option<&'a Map<String, Value>>, ServiceError> {
        self.value(name).map(|value| value.as_object().ok_or_else(|| wrong(name, "an object", value))).transpose()
    }
}

fn wrong(name: &str, expected: &str, found: &Value) -> ServiceError {
    let found = match found {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    ServiceError::request(format!("the member `{name}` must be {expected}, found {found}"))
}
