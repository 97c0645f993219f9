//! What opens the door where a key alone does not: signatures for AWS, tokens that run out for Google Cloud.

mod aws;
mod google;
mod service_account;
mod sigv4;

pub(crate) use aws::AwsKeys;
pub(crate) use google::{GoogleTokens, NoTokens};
