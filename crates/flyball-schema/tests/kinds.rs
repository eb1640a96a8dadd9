//! What the table of built-in kinds says, checked against what every Kubernetes user knows.

use flyball_schema::kinds::{self, Kinds};
use flyball_schema::resource::Resource;
use flyball_schema::schema::{Field, Form, ListKind, Node, Wire};
use serde_json::json;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const CORE: &str = "io.k8s.api.core.v1";

fn resource(group: &str, version: &str, plural: &str) -> &'static Resource {
    kinds::builtin().resource(group, version, plural).expect("a served resource")
}

fn schema(package: &str, name: &str) -> Node<'static> {
    kinds::builtin().schema(&format!("{package}.{name}")).expect("a type of the table")
}

/// The type at a path of fields; `[]` steps into a list's items.
fn at(root: Node<'static>, path: &str) -> Node<'static> {
    path.split('.').fold(root, |node, step| {
        let node = if step == "[]" { node.items() } else { node.field(step) };
        node.unwrap_or_else(|| panic!("{step} of {path}"))
    })
}

fn of_kind(group: &str, version: &str, kind: &str) -> Node<'static> {
    let kinds = kinds::builtin();
    let resource = kinds.kind(group, version, kind).expect("a served kind");
    kinds.schemas.node(resource.schema.expect("every resource has a type"))
}

fn keys(node: Node<'static>) -> Vec<&'static str> {
    match &node.schema().form {
        Form::List(list) => match &list.kind {
            ListKind::Map(keys) => keys.iter().map(|key| &**key).collect(),
            other => panic!("a list of kind {other:?}"),
        },
        other => panic!("no list: {other:?}"),
    }
}

fn declared(node: Node<'static>, name: &str) -> &'static Field {
    node.declared(name).expect("a declared field")
}

fn protobuf(node: Node<'static>, name: &str) -> (Vec<u32>, Wire) {
    let place = declared(node, name).protobuf.clone().expect("a place in protobuf");
    (place.path, place.wire)
}

#[test]
fn service_ports_are_told_apart_by_port_and_protocol() {
    assert_eq!(keys(at(of_kind("", "v1", "Service"), "spec.ports")), ["port", "protocol"]);
}

#[test]
fn container_ports_are_told_apart_by_container_port_and_protocol() {
    assert_eq!(keys(at(schema(CORE, "Container"), "ports")), ["containerPort", "protocol"]);
}

#[test]
fn a_protocol_that_is_left_out_is_tcp() {
    let protocol = at(schema(CORE, "ContainerPort"), "protocol");
    assert_eq!(protocol.default, Some(json!("TCP")));
    assert_eq!(protocol.allowed, [json!("SCTP"), json!("TCP"), json!("UDP")]);
}

#[test]
fn containers_merge_by_name() {
    let containers = declared(schema(CORE, "PodSpec"), "containers");
    let patch = containers.patch.as_deref().expect("a patch strategy");
    assert_eq!((patch.merge, patch.merge_key.as_deref()), (true, Some("name")));
    assert_eq!(keys(at(of_kind("", "v1", "Pod"), "spec.containers")), ["name"]);
    assert!(containers.required);
}

#[test]
fn volumes_merge_by_name_and_keep_only_the_keys_of_the_patch() {
    let patch = declared(schema(CORE, "PodSpec"), "volumes").patch.as_deref().expect("a patch strategy");
    assert!(patch.merge && patch.retain_keys && !patch.replace);
}

#[test]
fn the_selector_of_a_disruption_budget_is_replaced() {
    let spec = at(of_kind("policy", "v1", "PodDisruptionBudget"), "spec");
    let patch = declared(spec, "selector").patch.as_deref().expect("a patch strategy");
    assert!(patch.replace && !patch.merge);
}

#[test]
fn a_deployment_is_namespaced_and_scales() {
    let deployments = resource("apps", "v1", "deployments");
    assert!(deployments.namespaced);
    assert_eq!(deployments.short_names, ["deploy".into()]);
    assert_eq!(deployments.categories, ["all".into()]);
    assert_eq!((&*deployments.singular, &*deployments.kind), ("deployment", "Deployment"));
    assert_eq!(&*deployments.list_kind, "DeploymentList");
    let names: Vec<&str> = deployments.subresources.iter().map(|it| &*it.name).collect();
    assert_eq!(names, ["scale", "status"]);
    let scale = deployments.subresource("scale").expect("scale");
    assert_eq!((&*scale.group, &*scale.version, &*scale.kind), ("autoscaling", "v1", "Scale"));
    assert_eq!(scale.verbs, ["get".into(), "patch".into(), "update".into()]);
    let scale = kinds::builtin().schemas.node(scale.schema.expect("the type of a scale"));
    assert!(at(scale, "spec.replicas").format.as_deref() == Some("int32"));
}

#[test]
fn a_pod_is_served_as_discovery_says() {
    let pods = resource("", "v1", "pods");
    let verbs: Vec<&str> = pods.verbs.iter().map(|verb| &**verb).collect();
    assert_eq!(verbs.join(" "), "create delete deletecollection get list patch update watch");
    assert_eq!(pods.storage_version_hash.as_deref(), Some("xPOwRZ+Yhw8="));
    assert_eq!(pods.subresource("eviction").map(|it| &*it.group), Some("policy"));
    assert_eq!(pods.subresource("exec").expect("exec").schema, None);
}

#[test]
fn a_binding_can_be_created_but_not_listed() {
    let bindings = resource("", "v1", "bindings");
    assert_eq!((&*bindings.list_kind, bindings.verbs.len()), ("", 1));
}

#[test]
fn only_stable_versions_are_served() {
    let served: std::collections::BTreeSet<String> =
        kinds::builtin().resources.iter().map(Resource::api_version).collect();
    assert_eq!(served.len(), 22);
    assert!(served.iter().all(|it| !it.contains("alpha") && !it.contains("beta")), "{served:?}");
    assert!(kinds::builtin().resource("autoscaling", "v1", "horizontalpodautoscalers").is_some());
    assert!(kinds::builtin().resource("autoscaling", "v2", "horizontalpodautoscalers").is_some());
}

#[test]
fn protobuf_keeps_the_resource_version_in_field_six() {
    assert_eq!(protobuf(schema(META, "ObjectMeta"), "resourceVersion"), (vec![6], Wire::String));
}

#[test]
fn protobuf_keeps_what_go_embeds_one_message_deeper() {
    assert_eq!(protobuf(schema(CORE, "Volume"), "hostPath"), (vec![2, 1], Wire::Message));
    assert_eq!(protobuf(schema(CORE, "Volume"), "name"), (vec![1], Wire::String));
    let rule = schema("io.k8s.api.admissionregistration.v1", "NamedRuleWithOperations");
    assert_eq!(protobuf(rule, "apiGroups"), (vec![2, 2, 1], Wire::String));
}

#[test]
fn protobuf_knows_each_wire_type() {
    assert_eq!(protobuf(schema(CORE, "ContainerPort"), "containerPort").1, Wire::Varint);
    assert_eq!(protobuf(of_kind("", "v1", "Secret"), "data").1, Wire::Bytes);
    assert_eq!(protobuf(schema(META, "ObjectMeta"), "creationTimestamp").1, Wire::Message);
    let props = schema("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1", "JSONSchemaProps");
    assert_eq!(protobuf(props, "maximum"), (vec![9], Wire::Fixed64));
    assert_eq!(protobuf(props, "$ref"), (vec![3], Wire::String));
    assert_eq!(protobuf(props, "x-kubernetes-preserve-unknown-fields"), (vec![38], Wire::Varint));
}

#[test]
fn finalizers_are_a_set() {
    match &at(schema(META, "ObjectMeta"), "finalizers").form {
        Form::List(list) => assert_eq!(list.kind, ListKind::Set),
        other => panic!("{other:?}"),
    }
}

#[test]
fn selectors_are_replaced_as_a_whole() {
    assert!(matches!(&schema(META, "LabelSelector").form, Form::Object(object) if object.atomic));
    assert!(matches!(&at(schema(CORE, "PodSpec"), "nodeSelector").form, Form::Map(map) if map.atomic));
    assert!(matches!(&at(schema(META, "ObjectMeta"), "labels").form, Form::Map(map) if !map.atomic));
}

#[test]
fn a_claim_reference_merges_field_by_field_where_other_references_do_not() {
    assert!(matches!(&schema(CORE, "ObjectReference").form, Form::Object(object) if object.atomic));
    let claim = at(schema(CORE, "PersistentVolumeSpec"), "claimRef");
    assert!(matches!(&claim.form, Form::Object(object) if !object.atomic && object.fields.len() == 7));
    assert_eq!(claim.name.as_deref(), Some("io.k8s.api.core.v1.ObjectReference"));
}

#[test]
fn lists_without_a_type_are_atomic() {
    assert!(matches!(&at(schema(CORE, "Container"), "args").form, Form::List(list) if list.kind == ListKind::Atomic));
}

#[test]
fn special_forms_keep_their_names() {
    assert!(matches!(at(schema(CORE, "ResourceRequirements"), "limits.cpu").form, Form::Quantity));
    assert!(matches!(at(schema(CORE, "ServicePort"), "targetPort").form, Form::IntOrString));
    let time = at(schema(META, "ObjectMeta"), "creationTimestamp");
    assert_eq!(time.format.as_deref(), Some("date-time"));
    assert_eq!(time.name.as_deref(), Some("io.k8s.apimachinery.pkg.apis.meta.v1.Time"));
    let renewed = at(of_kind("coordination.k8s.io", "v1", "Lease"), "spec.renewTime");
    assert_eq!(renewed.name.as_deref(), Some("io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime"));
    let data = at(of_kind("apps", "v1", "ControllerRevision"), "data");
    assert!(data.preserve_unknown && matches!(&data.form, Form::Object(object) if object.atomic));
    let fields = at(schema(META, "ManagedFieldsEntry"), "fieldsV1");
    assert!(fields.preserve_unknown && matches!(&fields.form, Form::Object(object) if !object.atomic));
}

#[test]
fn the_schema_of_schemas_refers_to_itself() {
    let props = at(of_kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition"), "spec.versions.[]");
    let props = at(props, "schema.openAPIV3Schema");
    let deep = at(props, "properties.a.properties.b.allOf.[].not");
    assert_eq!(deep.fields().len(), props.fields().len());
    assert!(matches!(at(props, "items").form, Form::Any));
}

#[test]
fn a_field_that_go_always_writes_has_its_zero_value_as_default() {
    let container = schema(CORE, "Container");
    assert_eq!(at(container, "resources").default, Some(json!({})));
    assert_eq!(at(container, "name").default, Some(json!("")));
    assert_eq!(at(container, "image").default, None);
    assert_eq!(schema(CORE, "ResourceRequirements").default, None);
}

#[test]
fn types_that_no_resource_refers_to_are_there() {
    for name in [
        "DeleteOptions",
        "CreateOptions",
        "Status",
        "WatchEvent",
        "PartialObjectMetadata",
        "ListOptions",
    ] {
        assert!(schema(META, name).declared("apiVersion").is_some() || name == "WatchEvent", "{name}");
    }
    assert!(schema(CORE, "PodExecOptions").declared("command").is_some());
    assert!(schema("io.k8s.api.admission.v1", "AdmissionReview").declared("request").is_some());
    assert!(schema("io.k8s.api.authentication.v1", "TokenRequest").declared("spec").is_some());
    assert!(kinds::builtin().schema("io.k8s.api.core.v1.Unknown").is_none());
}

/// TypeMeta is not in any message: the envelope around an object carries it.
#[test]
fn every_field_but_those_of_type_meta_has_a_place_in_protobuf() {
    let kinds = kinds::builtin();
    let (mut places, mut without) = (0, Vec::new());
    for name in kinds.schema_names() {
        for field in kinds.schema(name).expect("a name of the table").fields() {
            match &field.protobuf {
                Some(place) => {
                    assert!(place.path.iter().all(|number| *number > 0), "{name}.{}", field.name);
                    places += 1;
                }
                None => without.push((name, &*field.name)),
            }
        }
    }
    assert!(places > 2_000, "{places}");
    without.retain(|(_, field)| !["apiVersion", "kind"].contains(field));
    assert_eq!(without, []);
}

#[test]
fn no_two_fields_of_a_type_share_a_place_in_protobuf() {
    let kinds = kinds::builtin();
    for name in kinds.schema_names() {
        let fields = kinds.schema(name).expect("a name of the table").fields();
        let mut places: Vec<&[u32]> = fields.iter().filter_map(|it| Some(&*it.protobuf.as_ref()?.path)).collect();
        places.sort();
        assert!(places.windows(2).all(|pair| pair[0] != pair[1]), "{name}");
    }
}

#[test]
fn the_wire_type_fits_the_form() {
    let kinds = kinds::builtin();
    for name in kinds.schema_names() {
        let node = kinds.schema(name).expect("a name of the table");
        for field in node.fields() {
            let Some(place) = &field.protobuf else { continue };
            let mut value = node.at(field.schema);
            while let Form::List(_) | Form::Map(_) = value.form {
                value = value.items().or_else(|| value.field("any")).expect("items or values");
            }
            let fits = match (&value.form, place.wire) {
                (Form::Boolean | Form::Integer, Wire::Varint) | (Form::Number, Wire::Fixed64) => true,
                (Form::String, Wire::Bytes) => value.format.as_deref() == Some("byte"),
                (Form::String, Wire::String) => value.format.is_none(),
                // Times, and lists that protobuf wraps: `map<string, ExtraValue>` and `Verbs`.
                (Form::String, Wire::Message) => value.format.is_some() || ["extra", "verbs"].contains(&&*field.name),
                (Form::Object(_) | Form::Any | Form::Quantity | Form::IntOrString, Wire::Message) => true,
                _ => false,
            };
            assert!(fits, "{name}.{} {:?} {:?}", field.name, value.form, place.wire);
        }
    }
}

#[test]
fn every_resource_has_the_type_of_an_object() {
    let kinds = kinds::builtin();
    for resource in &kinds.resources {
        let node = kinds.schemas.node(resource.schema.expect("a type"));
        assert!(node.declared("metadata").is_some(), "{}", resource.qualified());
        assert_eq!(
            kinds.kind(&resource.group, &resource.version, &resource.kind).map(|it| &it.plural),
            Some(&resource.plural)
        );
    }
}

#[test]
fn the_committed_table_is_whole() {
    assert_eq!(&*Kinds::read(kinds::TABLE).expect("a table").version, "v1.36.4");
}
