//! Checks of constants that are known to be wrong before evaluation (cel-go's validators).

use super::Checked;
use crate::ast::{ExprId, ExprKind, Literal};
use crate::env::Options;
use crate::library::{format_text, regex};
use crate::source::Issues;
use crate::typing::Type;
use crate::value::{Value, convert};

/// What is wrong with the constants of an expression.
pub(super) fn issues(checked: &Checked, options: Options) -> Issues {
    let mut issues = Issues::new(checked.tree.source.clone());
    if options.validates_literals {
        constants(checked, &mut issues);
    }
    if options.validates_formats {
        each(checked, checked.tree.root, false, &mut |id, _| format(checked, id, &mut issues));
    }
    issues
}

fn constants(checked: &Checked, issues: &mut Issues) {
    for kind in ["duration", "timestamp", "matches"] {
        each(checked, checked.tree.root, false, &mut |id, _| argument(checked, id, kind, issues));
    }
    each(checked, checked.tree.root, false, &mut |id, exempt| {
        if !exempt {
            elements(checked, id, issues);
        }
    });
}

/// Checks a constant format against the types of the elements of a list literal.
fn format(checked: &Checked, id: ExprId, issues: &mut Issues) {
    let ExprKind::Call { function, target: Some(target), args } = &checked.tree.expr(id).kind else {
        return;
    };
    let (ExprKind::Literal(Literal::String(text)), [list]) = (&checked.tree.expr(*target).kind, &args[..]) else {
        return;
    };
    let ExprKind::List { elements, .. } = &checked.tree.expr(*list).kind else {
        return;
    };
    if &**function != "format" {
        return;
    }
    let mut place = id;
    let mut seen = 0;
    let walked = format_text::walk(
        text,
        elements.len(),
        |_| Ok(()),
        |index, clause| {
            seen = index + 1;
            match refused(checked, elements[index], clause.verb) {
                Some(wrong) => {
                    place = wrong;
                    Err(format_text::refusal(clause.verb, checked.type_of(wrong)))
                }
                None => Ok(String::new()),
            }
        },
    );
    let message = match walked {
        Err(message) => message,
        Ok(_) if elements.len() > seen => {
            let count = elements.len();
            format!("too many arguments supplied to string.format (expected {seen}, got {count})")
        }
        Ok(_) => return,
    };
    issues.report(checked.tree.source.location(checked.tree.expr(place).offset), message);
}

/// The expression whose type a clause does not take.
fn refused(checked: &Checked, id: ExprId, verb: char) -> Option<ExprId> {
    let kind = match checked.type_of(id) {
        Type::Nullable(inner) => inner,
        kind => kind,
    };
    let taken = match verb {
        _ if *kind == Type::Dyn => true,
        'd' | 'o' => matches!(kind, Type::Int | Type::Uint),
        'f' | 'e' => matches!(kind, Type::Double | Type::String),
        'b' => matches!(kind, Type::Int | Type::Uint | Type::Bool),
        'x' | 'X' => matches!(kind, Type::Int | Type::Uint | Type::String | Type::Bytes),
        _ => !matches!(kind, Type::Struct(_) | Type::Opaque(..) | Type::Error),
    };
    if !taken {
        return Some(id);
    }
    match (&checked.tree.expr(id).kind, verb) {
        (ExprKind::List { elements, .. }, 's') => elements.iter().find_map(|id| refused(checked, *id, verb)),
        (ExprKind::Map(entries), 's') => {
            let ids = entries.iter().flat_map(|entry| [entry.key, entry.value]);
            ids.into_iter().find_map(|id| refused(checked, id, verb))
        }
        _ => None,
    }
}

/// Visits every expression below this one; tells whether it is inside a call of `format`.
fn each(checked: &Checked, id: ExprId, exempt: bool, visit: &mut dyn FnMut(ExprId, bool)) {
    visit(id, exempt);
    match &checked.tree.expr(id).kind {
        ExprKind::Unspecified | ExprKind::Literal(_) | ExprKind::Ident(_) => {}
        ExprKind::Select { operand, .. } => each(checked, *operand, exempt, visit),
        ExprKind::Call { function, target, args } => {
            let exempt = exempt || &**function == "format";
            target.iter().chain(args).for_each(|arg| each(checked, *arg, exempt, visit));
        }
        ExprKind::List { elements, .. } => elements.iter().for_each(|element| each(checked, *element, exempt, visit)),
        ExprKind::Map(entries) => entries.iter().for_each(|entry| {
            each(checked, entry.key, exempt, visit);
            each(checked, entry.value, exempt, visit);
        }),
        ExprKind::Struct { fields, .. } => {
            fields.iter().for_each(|field| each(checked, field.value, exempt, visit));
        }
        ExprKind::Comprehension(fold) => {
            let parts = [fold.range, fold.init, fold.condition, fold.step, fold.result];
            parts.into_iter().for_each(|part| each(checked, part, exempt, visit));
        }
    }
}

fn argument(checked: &Checked, id: ExprId, wanted: &str, issues: &mut Issues) {
    let ExprKind::Call { function, args, .. } = &checked.tree.expr(id).kind else {
        return;
    };
    let Some(argument) = args.first().filter(|_| &**function == wanted) else {
        return;
    };
    let ExprKind::Literal(literal) = &checked.tree.expr(*argument).kind else {
        return;
    };
    let value = match literal {
        Literal::String(text) => Value::text(text),
        Literal::Int(number) => Value::Int(*number),
        _ => return,
    };
    let valid = match (wanted, &value) {
        ("duration", value) => convert::convert(value, &Type::Duration).is_ok(),
        ("timestamp", value) => convert::convert(value, &Type::Timestamp).is_ok(),
        (_, Value::String(pattern)) => regex::compile(pattern).is_ok(),
        _ => true,
    };
    if !valid {
        let location = checked.tree.source.location(checked.tree.expr(*argument).offset);
        issues.report(location, format!("invalid {wanted} argument"));
    }
}

/// Reports the first element of a list, and every entry of a map, that is of another type than the first.
fn elements(checked: &Checked, id: ExprId, issues: &mut Issues) {
    let of = |id: ExprId, optional: bool| {
        let kind = checked.type_of(id);
        if optional {
            kind.optional_inner().unwrap_or(kind).clone()
        } else {
            kind.clone()
        }
    };
    let mut mismatch = |id: ExprId, expected: &Type, found: &Type| {
        let location = checked.tree.source.location(checked.tree.expr(id).offset);
        issues.report(location, format!("expected type '{expected}' but found '{found}'"));
    };
    match &checked.tree.expr(id).kind {
        ExprKind::List { elements, optional } => {
            let mut kinds = elements.iter().zip(optional).map(|(id, optional)| (*id, of(*id, *optional)));
            let Some((_, first)) = kinds.next() else { return };
            if let Some((id, other)) = kinds.find(|(_, kind)| !kind.is_exact(&first)) {
                mismatch(id, &first, &other);
            }
        }
        ExprKind::Map(entries) => {
            let mut kinds = entries.iter().map(|entry| (entry, of(entry.key, false), of(entry.value, entry.optional)));
            let Some((_, key, value)) = kinds.next() else { return };
            for (entry, other_key, other_value) in kinds {
                if !other_key.is_exact(&key) {
                    mismatch(entry.key, &key, &other_key);
                }
                if !other_value.is_exact(&value) {
                    mismatch(entry.value, &value, &other_value);
                }
            }
        }
        _ => {}
    }
}
