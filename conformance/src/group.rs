//! The groups of comparisons, and which of them a filter means.

mod access;
pub mod cel;
mod controllers;
pub mod corpus;
mod framework;
mod guide;
mod kubectl;
mod language;
mod manifests;
mod operators;
mod protobuf;
mod reference;
pub mod requests;
mod sequences;
mod store;
mod unready;

pub(crate) use operators::built;

use std::future::Future;
use std::pin::Pin;

use crate::leadership;
use crate::report::Finding;

/// Findings to come.
type Findings<'a> = Pin<Box<dyn Future<Output = Vec<Finding>> + 'a>>;

/// Comparisons that are made together.
pub struct Group {
    /// What a filter calls it.
    pub name: &'static str,
    /// What it compares, in one line.
    pub about: &'static str,
    /// Runs the cases whose names contain the text.
    pub run: for<'a> fn(&'a str) -> Findings<'a>,
}

/// Every group, in the order they run.
pub static GROUPS: [Group; 16] = [
    Group {
        name: "reference",
        about: "the control plane starts, answers and ends; the table of kinds is what it serves",
        run: |text| Box::pin(reference::run(text)),
    },
    Group {
        name: "requests",
        about: "the requests of conformance/requests to our server and to the real one",
        run: |text| Box::pin(requests::run(text)),
    },
    Group {
        name: "access",
        about: "what 40 users may do of 60 things, by random roles and bindings on both servers; FLYBALL_SEED chooses others",
        run: |text| Box::pin(access::run(text)),
    },
    Group {
        name: "corpus",
        about: "the cases of conformance/corpus to both, beside what is written down of the real one",
        run: |text| Box::pin(corpus::run(text)),
    },
    Group {
        name: "cel",
        about: "the validation rules of conformance/corpus/cel, beside what is written down of the real one",
        run: |text| Box::pin(cel::run(text)),
    },
    Group {
        name: "language",
        about: "cel-spec's tests on our CEL engine, beside what cel-go makes of them",
        run: |text| Box::pin(language::run(text)),
    },
    Group {
        name: "sequences",
        about: "applies of several managers to both, beside what is written down of the real one",
        run: |text| Box::pin(sequences::run(text)),
    },
    Group {
        name: "protobuf",
        about: "what the real server answers in JSON is what we write in its protobuf, byte for byte",
        run: |text| Box::pin(protobuf::run(text)),
    },
    Group {
        name: "store",
        about: "the store on a real etcd: the model of it, three members of which one dies, two servers, TLS, login, compaction",
        run: |text| Box::pin(store::run(text)),
    },
    Group {
        name: "kubectl",
        about: "the command lines of conformance/kubectl.yaml on our server and on the real one; KUBECTL names another kubectl",
        run: |text| Box::pin(kubectl::run(text)),
    },
    Group {
        name: "guide",
        about: "the command lines of the guide's first chapter, on `flyball up`",
        run: |text| Box::pin(guide::run(text)),
    },
    Group {
        name: "operators",
        about: "hello and application as programs, on the real control plane with its controllers",
        run: |text| Box::pin(operators::run(text)),
    },
    Group {
        name: "manifests",
        about: "what operators print is applied, and they run with exactly the rights that it gives them",
        run: |text| Box::pin(manifests::run(text)),
    },
    Group {
        name: "framework",
        about: "200 objects from their creation to their end, on our cluster and on the real one",
        run: |text| Box::pin(framework::run(text)),
    },
    Group {
        name: "controllers",
        about: "the scenarios of conformance/controllers with our controllers and with kube-controller-manager: objects and events",
        run: |text| Box::pin(controllers::run(text)),
    },
    Group {
        name: "leaders",
        about: "the leader of three replicas is killed, suspended, cut off and stopped, once each; `leadership` does so as often as asked",
        run: |text| Box::pin(leadership::findings(text)),
    },
];

/// A group and the text that its cases must contain.
pub type Chosen<'a> = (&'static Group, &'a str);

/// The groups that `filters` name as `GROUP` or `GROUP/TEXT`; all of them if there is no filter.
pub fn choose(filters: &[String]) -> Result<Vec<Chosen<'_>>, String> {
    if filters.is_empty() {
        return Ok(GROUPS.iter().map(|group| (group, "")).collect());
    }
    filters.iter().map(|filter| find(filter)).collect()
}

fn find(filter: &str) -> Result<Chosen<'_>, String> {
    let (name, text) = filter.split_once('/').unwrap_or((filter, ""));
    let group = GROUPS.iter().find(|group| group.name == name).ok_or_else(|| {
        let names: Vec<String> = GROUPS.iter().map(|group| format!("  {:12} {}", group.name, group.about)).collect();
        format!("no group is called `{name}`; the groups are\n{}", names.join("\n"))
    })?;
    Ok((group, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_filter_lists_the_groups() {
        let error = choose(&["refrence".into()]).err().unwrap();
        assert!(
            error.starts_with("no group is called `refrence`; the groups are\n  reference "),
            "{error}"
        );
    }

    #[test]
    fn a_filter_may_name_cases_of_a_group() {
        let filters = ["reference/version".to_owned()];
        let [(group, text)] = choose(&filters).unwrap()[..] else {
            panic!("one group")
        };
        assert_eq!((group.name, text), ("reference", "version"));
    }

    #[test]
    fn without_a_filter_every_group_runs() {
        assert_eq!(choose(&[]).unwrap().len(), GROUPS.len());
    }
}
