//! ConversionReview: a list of objects, and the version that all of them are wanted in.

use crate::webhook::conversion::ConversionSpec;
use crate::{Error, Result};
use kube::core::{
    Status,
    conversion::{ConversionRequest, ConversionResponse, ConversionReview},
};
use serde_json::Value;

const API_VERSION: &str = "apiextensions.k8s.io/v1";
const KIND: &str = "ConversionReview";

/// Answers a review with another one, or says why it is none.
pub(crate) fn answer(body: &[u8], conversions: &[ConversionSpec]) -> Result<Value, String> {
    let review: ConversionReview =
        serde_json::from_slice(body).map_err(|error| format!("the body is no {KIND}: {error}"))?;
    let types = &review.types;
    if types.api_version != API_VERSION || types.kind != KIND {
        return Err(format!(
            "expected {KIND} of {API_VERSION}, not {:?} of {:?}",
            types.kind, types.api_version
        ));
    }
    let request = ConversionRequest::from_review(review).map_err(|_| "the review has no request")?;
    if request.uid.is_empty() {
        return Err("request.uid: must not be empty".into());
    }
    let converted = converted(&request, conversions);
    let response = ConversionResponse::for_request(request);
    let response = match converted {
        Ok(objects) => response.success(objects),
        Err(error) => response.failure(Status::failure(&error.to_string(), "Invalid").with_code(422)),
    };
    serde_json::to_value(response.into_review()).map_err(|error| error.to_string())
}

fn converted(request: &ConversionRequest, conversions: &[ConversionSpec]) -> Result<Vec<Value>> {
    let convert = |object: &Value| convert(conversions, object, &request.desired_api_version);
    request.objects.iter().map(convert).collect()
}

/// An object in another version of its kind.
pub(crate) fn convert(conversions: &[ConversionSpec], object: &Value, to: &str) -> Result<Value> {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (text("/apiVersion"), text("/kind"));
    if version == to {
        return Ok(object.clone());
    }
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let conversion = conversions.iter().find(|conversion| conversion.group == group && conversion.kind == kind);
    let what = format!("{kind} {}/{}", text("/metadata/namespace"), text("/metadata/name"));
    let Some(conversion) = conversion else {
        return Err(Error::permanent(format!(
            "{what} of {version:?}: this operator does not convert its kind"
        )));
    };
    let converted = conversion.convert(object, to);
    converted.map_err(|error| Error::permanent(format!("convert {what} from {version} to {to}: {error}")))
}
