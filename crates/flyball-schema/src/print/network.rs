//! What routes and filters traffic: Ingresses, policies, endpoints, addresses.

use super::column::{AGED, NAME, NAMED, Shown, column, default_name, joined, list, none, number, or_none, text};
use super::workload;
use serde_json::{Value, json};

/// How many of a list are shown.
const MOST: usize = 3;

pub(super) const INGRESS: &[Shown] = &[
    NAMED,
    (column("Class", "string", "Who acts on it."), |object, _| {
        json!(or_none(text(object, "/spec/ingressClassName")))
    }),
    (column("Hosts", "string", "The hosts it routes."), |object, _| json!(hosts(object))),
    (column("Address", "string", "Where it can be reached."), |object, _| {
        json!(addresses(object))
    }),
    (column("Ports", "string", "The ports it listens on."), |object, _| {
        json!(if list(object, "/spec/tls").is_empty() {
            "80"
        } else {
            "80, 443"
        })
    }),
    AGED,
];

fn hosts(object: &Value) -> String {
    let rules = list(object, "/spec/rules");
    let mut shown: Vec<&str> = Vec::new();
    let mut more = false;
    for rule in rules {
        more |= shown.len() == MOST;
        let host = text(rule, "/host");
        if !more && !host.is_empty() {
            shown.push(host);
        }
    }
    match (shown.is_empty(), more) {
        (true, _) => "*".to_owned(),
        (false, true) => format!("{} + {} more...", shown.join(","), rules.len() - MOST),
        (false, false) => shown.join(","),
    }
}

fn addresses(object: &Value) -> String {
    let points = list(object, "/status/loadBalancer/ingress").iter();
    let mut shown: Vec<&str> = points
        .map(|point| match text(point, "/ip") {
            "" => text(point, "/hostname"),
            ip => ip,
        })
        .filter(|address| !address.is_empty())
        .collect();
    shown.sort_unstable();
    shown.dedup();
    shown.join(",")
}

pub(super) const INGRESS_CLASS: &[Shown] = &[
    (NAME, |object, _| {
        json!(default_name(object, "ingressclass.kubernetes.io/is-default-class"))
    }),
    (column("Controller", "string", "Who acts on its Ingresses."), |object, _| {
        json!(text(object, "/spec/controller"))
    }),
    (column("Parameters", "string", "What the controller reads besides."), |object, _| {
        json!(parameters(object))
    }),
    AGED,
];

fn parameters(object: &Value) -> String {
    let parameters = "/spec/parameters";
    if object.pointer(parameters).is_none() {
        return "<none>".to_owned();
    }
    let part = |field: &str| text(object, &format!("{parameters}/{field}"));
    match part("apiGroup") {
        "" => format!("{}/{}", part("kind"), part("name")),
        group => format!("{}.{group}/{}", part("kind"), part("name")),
    }
}

pub(super) const NETWORK_POLICY: &[Shown] = &[
    NAMED,
    (column("Pod-Selector", "string", "The pods it governs."), |object, _| {
        json!(or_none(&workload::selector_at(object, "/spec/podSelector")))
    }),
    AGED,
];

pub(super) const ENDPOINTS: &[Shown] = &[
    NAMED,
    (column("Endpoints", "string", "Where the service's pods listen."), |object, _| {
        json!(endpoints(object))
    }),
    AGED,
];

fn endpoints(object: &Value) -> String {
    let subsets = list(object, "/subsets");
    if subsets.is_empty() {
        return "<none>".to_owned();
    }
    let mut all = Vec::new();
    for subset in subsets {
        let addresses = list(subset, "/addresses").iter().map(|address| text(address, "/ip"));
        match list(subset, "/ports") {
            [] => all.extend(addresses.map(str::to_owned)),
            ports => all.extend(ports.iter().flat_map(|port| {
                let port = number(port, "/port");
                addresses.clone().map(move |ip| {
                    if ip.contains(':') {
                        format!("[{ip}]:{port}")
                    } else {
                        format!("{ip}:{port}")
                    }
                })
            })),
        }
    }
    some(&all)
}

/// The first few, and how many more there are.
fn some(all: &[String]) -> String {
    match all.len() > MOST {
        true => format!("{} + {} more...", all[..MOST].join(","), all.len() - MOST),
        false => all.join(","),
    }
}

pub(super) const ENDPOINT_SLICE: &[Shown] = &[
    NAMED,
    (column("AddressType", "string", "What its addresses are."), |object, _| {
        json!(text(object, "/addressType"))
    }),
    (column("Ports", "string", "The ports that its endpoints serve."), |object, _| {
        let port = |port: &Value| match (port["port"].as_i64(), port["name"].as_str()) {
            (Some(number), _) => number.to_string(),
            (None, Some(name)) => name.to_owned(),
            (None, None) => "*".to_owned(),
        };
        json!(or_unset(&list(object, "/ports").iter().map(port).collect::<Vec<_>>()))
    }),
    (column("Endpoints", "string", "Where they can be reached."), |object, _| {
        let all = list(object, "/endpoints").iter().flat_map(|endpoint| list(endpoint, "/addresses"));
        let all: Vec<String> = all.filter_map(|address| address.as_str().map(str::to_owned)).collect();
        json!(or_unset(&all))
    }),
    AGED,
];

fn or_unset(all: &[String]) -> String {
    if all.is_empty() {
        "<unset>".to_owned()
    } else {
        some(all)
    }
}

pub(super) const SERVICE_CIDR: &[Shown] = &[
    NAMED,
    (column("CIDRs", "string", "The ranges that services get addresses from."), |object, _| {
        json!(joined(list(object, "/spec/cidrs"), ","))
    }),
    AGED,
];

pub(super) const IP_ADDRESS: &[Shown] = &[
    NAMED,
    (column("ParentRef", "string", "Who has the address."), |object, _| {
        let part = |field: &str| text(object, &format!("/spec/parentRef/{field}"));
        if object.pointer("/spec/parentRef").is_none() {
            return none();
        }
        let dotted = if part("group").is_empty() {
            String::new()
        } else {
            format!(".{}", part("group"))
        };
        let inside = if part("namespace").is_empty() {
            String::new()
        } else {
            format!("/{}", part("namespace"))
        };
        json!(format!("{}{dotted}{inside}/{}", part("resource"), part("name")).to_lowercase())
    }),
    AGED,
];
