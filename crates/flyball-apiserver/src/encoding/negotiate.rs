//! Which encoding and shape a client asks for in `Accept`, and which encoding its body is in.
//! The order of clauses and the words of refusals are k8s.io/apiserver's (`endpoints/handlers/negotiation`).

use crate::request::info::Query;
use crate::status::{Result, Status};
use flyball_schema::print::{Include, Meta};
use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};

/// What a response looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// How it is written.
    pub encoding: Encoding,
    /// Whether it is indented for people; JSON only.
    pub pretty: bool,
    /// What becomes of the object or list.
    pub shape: Shape,
}

/// How objects are written as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// `application/json`
    Json,
    /// `application/yaml`
    Yaml,
    /// `application/vnd.kubernetes.protobuf`
    Protobuf,
}

/// What becomes of an object or a list before it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// It stays what it is.
    Object,
    /// A `Table`: rows and columns.
    Table(Meta, Include),
    /// A `PartialObjectMetadata`.
    Partial(Meta),
    /// A `PartialObjectMetadataList`.
    PartialList(Meta),
}

/// Who answers a request: Kubernetes words a refusal by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A built-in kind, whose routes are declared up front.
    BuiltIn,
    /// A custom resource.
    Custom,
}

/// The media types of objects.
pub const OBJECTS: [&str; 3] = [
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
];
/// The media types of watches.
pub const STREAMS: [&str; 2] = [
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];

impl Format {
    /// Compact JSON, the object as it is.
    pub const JSON: Format = Format {
        encoding: Encoding::Json,
        pretty: false,
        shape: Shape::Object,
    };

    /// What the client wants of an object or list that may be converted.
    pub fn resource(headers: &HeaderMap, query: &Query, endpoint: Endpoint) -> Result<Format> {
        routed(headers, endpoint, &OBJECTS)?;
        Self::negotiated(headers, query, endpoint)
    }

    /// What the client wants of a list; the same path answers watches, and says so where it refuses.
    pub fn list(headers: &HeaderMap, query: &Query, endpoint: Endpoint) -> Result<Format> {
        routed(headers, endpoint, &[OBJECTS.as_slice(), &STREAMS].concat())?;
        Self::negotiated(headers, query, endpoint)
    }

    fn negotiated(headers: &HeaderMap, query: &Query, endpoint: Endpoint) -> Result<Format> {
        let clause = choose(headers, |encoding, clause| clause.shape().is_some_and(|it| it.has(encoding, endpoint)));
        let (encoding, clause) = clause.ok_or_else(|| Status::not_acceptable(&OBJECTS))?;
        let shape = match clause.shape().expect("chosen because it has one") {
            Shape::Table(meta, _) => Shape::Table(meta, include(query)?),
            shape => shape,
        };
        Ok(Format {
            encoding,
            pretty: clause.pretty() || pretty(headers, query),
            shape,
        })
    }

    /// What the client wants of a watch.
    pub fn stream(headers: &HeaderMap, query: &Query, endpoint: Endpoint) -> Result<Format> {
        routed(headers, endpoint, &[OBJECTS.as_slice(), &STREAMS].concat())?;
        match Self::negotiated(headers, query, endpoint) {
            Ok(format) if format.encoding != Encoding::Yaml => Ok(Format { pretty: false, ..format }),
            // nothing but the kind says that protobuf cannot be had
            Err(status) if status.code == 400 || endpoint == Endpoint::Custom => Err(status),
            _ => Err(Status::not_acceptable(&STREAMS)),
        }
    }

    /// What the client wants of something that is never converted.
    pub fn plain(headers: &HeaderMap, query: &Query) -> Result<Format> {
        let clause = choose(headers, |_, clause| clause.shape() == Some(Shape::Object));
        let (encoding, clause) = clause.ok_or_else(|| Status::not_acceptable(&OBJECTS))?;
        Ok(Format {
            encoding,
            pretty: clause.pretty() || pretty(headers, query),
            shape: Shape::Object,
        })
    }

    /// What the client gets when something went wrong: what it wants if possible, indented JSON if not.
    pub fn of_status(headers: &HeaderMap, query: &Query) -> Format {
        Self::plain(headers, query).unwrap_or(Format { pretty: true, ..Self::JSON })
    }

    /// The `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self.encoding {
            Encoding::Json => OBJECTS[0],
            Encoding::Yaml => OBJECTS[1],
            Encoding::Protobuf => OBJECTS[2],
        }
    }

    /// The `Content-Type` of a watch.
    pub fn stream_type(self) -> &'static str {
        match self.encoding {
            Encoding::Protobuf => STREAMS[1],
            _ => self.content_type(),
        }
    }
}

impl Shape {
    /// Whether it can be written so: custom resources and tables have no protobuf.
    // apiserver/pkg/endpoints/handlers/rest.go, AllowsMediaTypeTransform
    fn has(self, encoding: Encoding, endpoint: Endpoint) -> bool {
        match self {
            _ if encoding != Encoding::Protobuf => true,
            Shape::Object => endpoint == Endpoint::BuiltIn,
            Shape::Table(..) => false,
            Shape::Partial(_) | Shape::PartialList(_) => true,
        }
    }
}

/// How the body of a request is encoded; JSON where the client does not say.
pub fn body(headers: &HeaderMap) -> Result<Encoding> {
    let Some(content_type) = headers.get(CONTENT_TYPE).filter(|value| !value.is_empty()) else {
        return Ok(Encoding::Json);
    };
    let media_type = content_type.to_str().ok().and_then(|value| value.split(';').next()).unwrap_or_default();
    match media_type.trim().to_ascii_lowercase().as_str() {
        "application/json" => Ok(Encoding::Json),
        "application/yaml" => Ok(Encoding::Yaml),
        "application/vnd.kubernetes.protobuf" => Ok(Encoding::Protobuf),
        _ => Err(Status::unsupported_media_type(&OBJECTS)),
    }
}

/// One clause of an `Accept` header.
#[derive(Clone, Debug, PartialEq)]
pub struct Clause<'a> {
    kind: &'a str,
    subtype: &'a str,
    quality: f32,
    parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> Clause<'a> {
    /// A parameter's value; the last one counts.
    pub fn parameter(&self, name: &str) -> Option<&'a str> {
        self.parameters.iter().rev().find(|(key, _)| *key == name).map(|(_, value)| *value)
    }

    /// The group, version and kind to convert to; none if nothing is to be converted.
    pub fn conversion(&self) -> Option<(&'a str, &'a str, &'a str)> {
        let [group, version, kind] = ["g", "v", "as"].map(|name| self.parameter(name));
        (group.is_some() || version.is_some() || kind.is_some())
            .then(|| (group.unwrap_or_default(), version.unwrap_or_default(), kind.unwrap_or_default()))
    }

    /// Whether the clause means this media type.
    pub fn admits(&self, kind: &str, subtype: &str) -> bool {
        (self.kind == kind && (self.subtype == subtype || self.subtype == "*"))
            || (self.kind == "*" && self.subtype == "*")
    }

    fn pretty(&self) -> bool {
        self.parameter("pretty") == Some("1")
    }

    /// What the clause wants an object to become, if that can be done.
    fn shape(&self) -> Option<Shape> {
        let served = self.parameter("sv").is_none_or(|version| matches!(version, "" | "v1"));
        let stream = self.parameter("stream").is_none_or(|stream| matches!(stream, "" | "watch"));
        if !served || !stream {
            return None;
        }
        let Some((group, version, kind)) = self.conversion() else {
            return Some(Shape::Object);
        };
        let meta = match (group, version) {
            ("meta.k8s.io", "v1") => Meta::V1,
            ("meta.k8s.io", "v1beta1") => Meta::V1beta1,
            _ => return None,
        };
        match kind {
            "Table" => Some(Shape::Table(meta, Include::Metadata)),
            "PartialObjectMetadata" => Some(Shape::Partial(meta)),
            "PartialObjectMetadataList" => Some(Shape::PartialList(meta)),
            _ => None,
        }
    }
}

/// The clauses of `Accept`, best first, in goautoneg's order.
pub fn accept(headers: &HeaderMap) -> Vec<Clause<'_>> {
    let header = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut clauses: Vec<Clause<'_>> = header.split(',').filter_map(clause).collect();
    // goautoneg's comparison is no order (a wildcard may stand both before and after a type), so how it is sorted
    // shows: Go sorts up to twelve clauses by insertion, and so does this.
    for end in 1..clauses.len() {
        let mut at = end;
        while at > 0 && before(&clauses[at], &clauses[at - 1]) {
            clauses.swap(at, at - 1);
            at -= 1;
        }
    }
    clauses
}

fn before(one: &Clause<'_>, other: &Clause<'_>) -> bool {
    one.quality > other.quality
        || (one.kind != "*" && other.kind == "*")
        || (one.subtype != "*" && other.subtype == "*")
}

fn clause(text: &str) -> Option<Clause<'_>> {
    let mut parts = text.split(';');
    let media_type = parts.next()?.trim_matches(' ');
    let (kind, subtype) = match media_type.split_once('/') {
        Some((kind, subtype)) if !subtype.is_empty() && !subtype.contains('/') => (kind, subtype),
        None if media_type == "*" => ("*", "*"),
        _ => return None,
    };
    let parameters = parts.filter_map(|part| part.split_once('=')).filter(|(_, value)| !value.contains('='));
    let parameters = parameters.map(|(key, value)| (key.trim_matches(' '), value.trim_matches(' ')));
    let (qualities, parameters): (Vec<_>, Vec<_>) = parameters.partition(|(key, _)| *key == "q");
    let quality = qualities.last().map_or(1.0, |(_, value)| value.parse().unwrap_or(0.0));
    Some(Clause {
        kind: kind.trim_matches(' '),
        subtype: subtype.trim_matches(' '),
        quality,
        parameters,
    })
}

/// The first clause that names an encoding and passes, with that encoding; JSON where there is no `Accept`.
pub fn choose<'a>(
    headers: &'a HeaderMap,
    passes: impl Fn(Encoding, &Clause<'a>) -> bool,
) -> Option<(Encoding, Clause<'a>)> {
    if headers.get(ACCEPT).is_none_or(|value| value.is_empty()) {
        let anything = Clause { kind: "*", subtype: "*", quality: 1.0, parameters: vec![] };
        return Some((Encoding::Json, anything));
    }
    let encodings = [
        (Encoding::Json, "json"),
        (Encoding::Yaml, "yaml"),
        (Encoding::Protobuf, "vnd.kubernetes.protobuf"),
    ];
    accept(headers).into_iter().find_map(|clause| {
        let mut named = encodings.iter().filter(|(_, subtype)| clause.admits("application", subtype));
        let (encoding, _) = named.find(|(encoding, _)| passes(*encoding, &clause))?;
        Some((*encoding, clause))
    })
}

fn routed(headers: &HeaderMap, endpoint: Endpoint, representations: &[&str]) -> Result<()> {
    match endpoint {
        Endpoint::Custom => Ok(()),
        Endpoint::BuiltIn => check_representation(headers, representations),
    }
}

/// 406 unless `Accept` names one of the representations, or anything. Paths of built-in kinds are routed so, before
/// anything is negotiated, and that routing knows no `application/*`.
// go-restful, `Route.matchesAccept`
pub fn check_representation(headers: &HeaderMap, representations: &[&str]) -> Result<()> {
    let header = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("*/*");
    let mut named = header.split(',').map(|part| part.split(';').next().unwrap_or_default().trim());
    let known = |media_type: &str| media_type == "*/*" || representations.contains(&media_type);
    if header.is_empty() || named.any(known) {
        return Ok(());
    }
    Err(Status::no_representation(representations))
}

fn include(query: &Query) -> Result<Include> {
    match query.get("includeObject") {
        None | Some("Metadata") => Ok(Include::Metadata),
        Some("None") => Ok(Include::None),
        Some("Object") => Ok(Include::Object),
        Some(other) => Err(Status::bad_request(format!(
            "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: \
             must be 'Metadata', 'Object', 'None', or empty"
        ))),
    }
}

/// Whether people are reading: they say so, or use a browser or a command-line tool.
pub fn pretty(headers: &HeaderMap, query: &Query) -> bool {
    if let Some(pretty) = query.get("pretty") {
        return matches!(pretty, "1" | "t" | "T" | "true" | "TRUE" | "True");
    }
    let user_agent = headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    ["curl", "Wget", "Mozilla/5.0"].iter().any(|prefix| user_agent.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(accept: &str) -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT, accept.parse().unwrap())])
    }

    fn resource(accept: &str) -> Result<Format> {
        Format::resource(&headers(accept), &Query::default(), Endpoint::BuiltIn)
    }

    const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

    #[test]
    fn the_first_acceptable_clause_wins() {
        let yaml = Format { encoding: Encoding::Yaml, ..Format::JSON };
        let protobuf = Format { encoding: Encoding::Protobuf, ..Format::JSON };
        let table = Format {
            shape: Shape::Table(Meta::V1, Include::Metadata),
            ..Format::JSON
        };
        for (accept, expected) in [
            ("", Format::JSON),
            ("*/*", Format::JSON),
            ("application/yaml", yaml),
            ("application/json;q=0.1, application/yaml", yaml),
            ("application/vnd.kubernetes.protobuf, application/json", protobuf),
            (
                "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io, application/json",
                Format::JSON,
            ),
            ("application/json;as=Unknown;v=v1;g=meta.k8s.io, application/yaml", yaml),
            ("application/json;as=Table;v=v9;g=meta.k8s.io,application/json", Format::JSON),
            (&format!("{TABLE},application/json"), table),
            ("application/json; charset=utf-8", Format::JSON),
            // goautoneg puts the type before the wildcard that precedes it, whatever their qualities say
            ("*/*;q=1, application/yaml;q=0.5", yaml),
            ("application/yaml;q=0.5, */*;q=1", Format::JSON),
        ] {
            assert_eq!(resource(accept), Ok(expected), "{accept:?}");
        }
    }

    #[test]
    fn what_cannot_be_produced_is_refused_by_name() {
        let message = |accept: &str, endpoint| {
            Format::resource(&headers(accept), &Query::default(), endpoint).unwrap_err().message
        };

        let negotiated = "only the following media types are accepted: \
                          application/json, application/yaml, application/vnd.kubernetes.protobuf";
        assert_eq!(message("text/plain", Endpoint::Custom), negotiated);
        assert_eq!(message("application/json;as=Foo;v=v1;g=meta.k8s.io", Endpoint::BuiltIn), negotiated);
        assert_eq!(message("application/vnd.kubernetes.protobuf", Endpoint::Custom), negotiated);
        let routed = "406: Not Acceptable\n\nAvailable representations: \
                      application/json, application/yaml, application/vnd.kubernetes.protobuf";
        assert_eq!(message("text/plain", Endpoint::BuiltIn), routed);
        assert_eq!(message("application/*", Endpoint::BuiltIn), routed);
    }

    #[test]
    fn a_watch_is_no_yaml_and_never_indented() {
        let stream = |accept: &str| Format::stream(&headers(accept), &Query::parse("pretty=1"), Endpoint::BuiltIn);

        assert_eq!(stream("application/json;stream=watch"), Ok(Format::JSON));
        let refused = "only the following media types are accepted: \
                       application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
        assert_eq!(stream("application/yaml").unwrap_err().message, refused);
    }

    #[test]
    fn what_a_row_includes_is_checked() {
        let include = |query| match Format::resource(&headers(TABLE), &Query::parse(query), Endpoint::Custom) {
            Ok(Format { shape: Shape::Table(_, include), .. }) => Ok(include),
            Ok(_) => panic!("no table"),
            Err(status) => Err(status.message),
        };

        assert_eq!(include("includeObject=None"), Ok(Include::None));
        assert_eq!(include("includeObject=Object"), Ok(Include::Object));
        assert_eq!(include("includeObject="), Ok(Include::Metadata));
        let refused = "Unable to convert to Table as requested: includeObject: Invalid value: \"Foo\": \
                       must be 'Metadata', 'Object', 'None', or empty";
        assert_eq!(include("includeObject=Foo"), Err(refused.to_owned()));
    }

    #[test]
    fn people_get_indented_json() {
        let curl = HeaderMap::from_iter([(USER_AGENT, "curl/8.5".parse().unwrap())]);

        assert!(pretty(&curl, &Query::default()));
        assert!(!pretty(&curl, &Query::parse("pretty=false")));
        assert!(pretty(&HeaderMap::new(), &Query::parse("pretty=true")));
        assert!(!pretty(&HeaderMap::new(), &Query::parse("pretty=xx")));
        assert!(resource("application/json;pretty=1").unwrap().pretty);
    }

    #[test]
    fn bodies_are_json_unless_they_say_yaml_or_protobuf() {
        let body = |value: &str| body(&HeaderMap::from_iter([(CONTENT_TYPE, value.parse().unwrap())]));

        assert_eq!(body(""), Ok(Encoding::Json));
        assert_eq!(body("application/json; charset=utf-8"), Ok(Encoding::Json));
        assert_eq!(body("application/yaml"), Ok(Encoding::Yaml));
        assert_eq!(body("application/vnd.kubernetes.protobuf"), Ok(Encoding::Protobuf));
        let refused = "the body of the request was in an unknown format - accepted media types include: \
                       application/json, application/yaml, application/vnd.kubernetes.protobuf";
        assert_eq!(body("application/cbor").unwrap_err().message, refused);
    }
}
