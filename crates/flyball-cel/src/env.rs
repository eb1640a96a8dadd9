//! The environment of an expression: which names, types and libraries it may use.

use crate::ast::Tree;
use crate::check;
use crate::cost::estimate::{self, CostEstimate, SizeEstimator};
use crate::decl::{Function, Overload};
use crate::library::Library;
use crate::parse::{self, Syntax};
use crate::plan;
use crate::program::Program;
use crate::source::Issues;
use crate::typing::Type;
use std::collections::HashMap;
use std::sync::Arc;

/// The fields of an object type.
#[derive(Clone, Debug, Default)]
pub struct ObjectType {
    /// The type of each field, by its name in expressions.
    pub fields: HashMap<Arc<str>, Type>,
    /// Whether expressions may make values of it.
    pub(crate) has_literals: bool,
}

/// What an expression may use. Cheap to clone and to extend: what is shared is behind reference counts.
///
/// ```
/// use flyball_cel::{Bindings, Env, Library, Type, Value};
/// use serde_json::json;
///
/// let env = Env::new([Library::Standard, Library::Bindings]).variable("self", Type::Dyn);
/// let rule = env.compile("self.replicas <= 3 && self.name == 'Web'").expect("a valid rule");
/// let object = json!({"name": "Web", "replicas": 2});
/// let bindings = Bindings::new().bind("self", Value::json(&object));
/// let verdict = rule.evaluate(&bindings).expect("no error at run time");
/// assert_eq!(verdict, Value::Bool(true));
/// ```
#[derive(Clone, Debug)]
pub struct Env {
    pub(crate) functions: Arc<HashMap<&'static str, Function>>,
    pub(crate) syntax: Arc<Syntax>,
    pub(crate) variables: HashMap<Arc<str>, Type>,
    pub(crate) objects: HashMap<Arc<str>, Arc<ObjectType>>,
    /// Names of message types that take any field, as do all types whose names begin with one of these and a dot.
    pub(crate) open_messages: Vec<Arc<str>>,
    pub(crate) type_names: HashMap<Arc<str>, Type>,
    pub(crate) container: Arc<str>,
    pub(crate) options: Options,
}

/// Which of the optional behaviours are switched on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    pub homogeneous_literals: bool,
    pub same_type_comparisons: bool,
    pub validates_literals: bool,
    pub validates_formats: bool,
    pub kubernetes_costs: bool,
    pub list_costs: bool,
    pub strict_presence: bool,
}

impl Env {
    /// An environment with these libraries.
    pub fn new(libraries: impl IntoIterator<Item = Library>) -> Env {
        let mut env = Env {
            functions: Arc::default(),
            syntax: Arc::default(),
            variables: HashMap::new(),
            objects: HashMap::new(),
            open_messages: Vec::new(),
            type_names: HashMap::new(),
            container: "".into(),
            options: Options::default(),
        };
        libraries.into_iter().for_each(|library| library.install(&mut env));
        env
    }

    /// Kubernetes 1.36's base environment: its libraries, its checks of constants, its costs. Made once and then cloned.
    pub fn kubernetes() -> Env {
        static BASE: std::sync::OnceLock<Env> = std::sync::OnceLock::new();
        let base = BASE.get_or_init(|| Env::new(crate::library::KUBERNETES).validated_literals().kubernetes_costs());
        base.clone()
    }

    /// Declares a variable.
    #[must_use]
    pub fn variable(mut self, name: &str, kind: Type) -> Env {
        self.variables.insert(name.into(), kind);
        self
    }

    /// Declares an object type and its fields. Expressions receive values of it and cannot make them.
    #[must_use]
    pub fn object<'n>(self, name: &str, fields: impl IntoIterator<Item = (&'n str, Type)>) -> Env {
        self.declare(name, fields, false)
    }

    /// Declares a type whose values are [`Message`]s that expressions make, as in `Name{field: value}`.
    ///
    /// [`Message`]: crate::value::Message
    #[must_use]
    pub fn message<'n>(self, name: &str, fields: impl IntoIterator<Item = (&'n str, Type)>) -> Env {
        self.declare(name, fields, true)
    }

    /// Declares message types without declared fields: this name, and every name that begins with it and a dot.
    ///
    /// ```
    /// use flyball_cel::{Bindings, Env};
    ///
    /// let env = Env::kubernetes().open_messages("Object");
    /// let program = env.compile("Object{spec: Object.spec{replicas: 3}}").expect("valid");
    /// let value = program.evaluate(&Bindings::new()).expect("a message");
    /// assert_eq!(value.to_json().expect("JSON").to_string(), r#"{"spec":{"replicas":3}}"#);
    /// ```
    #[must_use]
    pub fn open_messages(mut self, name: &str) -> Env {
        self.open_messages.push(name.into());
        self
    }

    fn declare<'n>(mut self, name: &str, fields: impl IntoIterator<Item = (&'n str, Type)>, has_literals: bool) -> Env {
        let fields = fields.into_iter().map(|(name, kind)| (name.into(), kind)).collect();
        self.objects.insert(name.into(), Arc::new(ObjectType { fields, has_literals }));
        self
    }

    /// Adds a library.
    #[must_use]
    pub fn library(mut self, library: Library) -> Env {
        library.install(&mut self);
        self
    }

    pub(crate) fn is_object(&self, name: &str) -> bool {
        self.objects.contains_key(name) || self.is_open_message(name)
    }

    pub(crate) fn is_open_message(&self, name: &str) -> bool {
        let is_below =
            |root: &str| name.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        self.open_messages.iter().any(|root| is_below(root))
    }

    /// Resolves names within this namespace first.
    #[must_use]
    pub fn container(mut self, name: &str) -> Env {
        self.container = name.into();
        self
    }

    /// Requires the elements of list and map literals to be of one type.
    #[must_use]
    pub fn homogeneous_literals(mut self) -> Env {
        self.options.homogeneous_literals = true;
        self
    }

    /// Refuses comparisons such as `1 < 2u` unless one side is dynamic.
    #[must_use]
    pub fn same_type_comparisons(mut self) -> Env {
        self.options.same_type_comparisons = true;
        self
    }

    /// Checks constant patterns, durations and timestamps when an expression is compiled.
    #[must_use]
    pub fn validated_literals(mut self) -> Env {
        self.options.validates_literals = true;
        self
    }

    /// Charges calls what Kubernetes charges for them.
    #[must_use]
    pub fn kubernetes_costs(mut self) -> Env {
        self.options.kubernetes_costs = true;
        self
    }

    /// Allows names in backticks behind a dot.
    #[must_use]
    pub fn quoted_identifiers(mut self) -> Env {
        Arc::make_mut(&mut self.syntax).quoted_identifiers = true;
        self
    }

    /// Parses an expression without checking it.
    ///
    /// # Errors
    /// Everything that is wrong with its syntax.
    pub fn parse(&self, text: &str) -> Result<Tree, Issues> {
        parse::parse(text, &self.syntax)
    }

    /// Parses and checks an expression.
    ///
    /// # Errors
    /// Everything that is wrong with its syntax or, if that is sound, with its types.
    pub fn check(&self, text: &str) -> Result<check::Checked, Issues> {
        check::check(self.parse(text)?, self)
    }

    /// Parses, checks and prepares an expression for evaluation.
    ///
    /// # Errors
    /// What is wrong with it; [`CompileError`] tells compile-time issues from constants that fail to convert.
    pub fn compile(&self, text: &str) -> Result<Program, CompileError> {
        let checked = self.check(text).map_err(CompileError::Invalid)?;
        plan::plan(checked, self).map_err(CompileError::Program)
    }

    /// Estimates what an expression that was checked in this environment may cost.
    pub fn estimate_cost(&self, checked: &check::Checked, sizes: &dyn SizeEstimator) -> CostEstimate {
        estimate::estimate(checked, sizes, self.options)
    }

    /// Reports `has(x.y)` as an error if `x` is neither a map nor an object, instead of false.
    #[must_use]
    pub fn strict_presence(mut self) -> Env {
        self.options.strict_presence = true;
        self
    }

    pub(crate) fn add(&mut self, function: &'static str, overload: Overload) {
        let functions = Arc::make_mut(&mut self.functions);
        let found = functions.entry(function).or_insert_with(|| Function {
            name: function,
            overloads: Vec::new(),
            singleton: None,
        });
        match found.overloads.iter_mut().find(|known| known.id == overload.id) {
            Some(known) => *known = overload,
            None => found.overloads.push(overload),
        }
    }

    /// The names that a name may stand for, the innermost namespace first.
    pub(crate) fn candidates(&self, name: &str) -> Vec<Arc<str>> {
        if let Some(absolute) = name.strip_prefix('.') {
            return vec![absolute.into()];
        }
        let mut names = Vec::new();
        let mut container = &*self.container;
        while !container.is_empty() {
            names.push(format!("{container}.{name}").into());
            container = container.rsplit_once('.').map_or("", |(outer, _)| outer);
        }
        names.push(name.into());
        names
    }
}

/// Why an expression is not accepted.
#[derive(Clone, Debug)]
pub enum CompileError {
    /// Its syntax or its types are wrong.
    Invalid(Issues),
    /// A constant in it does not convert, or a constant pattern does not compile.
    Program(String),
}

impl std::fmt::Display for CompileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CompileError::Invalid(issues) => issues.fmt(f),
            CompileError::Program(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for CompileError {}
