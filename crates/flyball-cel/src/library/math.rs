//! Mathematical functions (cel-go's math extension).

use super::add;
use crate::decl::{Entry, Overload, entry};
use crate::env::Env;
use crate::eval::EvalError;
use crate::value::{Value, order};
use std::cmp::Ordering;

type Outcome<'a> = Result<Value<'a>, EvalError>;

pub(super) fn install(env: &mut Env, version: u32) {
    for (id, signature) in MAX {
        env.add("math.@max", Overload::read(id, signature, Some(|args| extreme(args, Ordering::Less))));
    }
    for (id, signature) in MIN {
        env.add("math.@min", Overload::read(id, signature, Some(|args| extreme(args, Ordering::Greater))));
    }
    if version >= 1 {
        add(env, &FUNCTIONS);
    }
    if version >= 2 {
        add(env, &ROOTS);
    }
}

const MAX: [(&str, &str); 15] = [
    ("math_@max_double", "(double) -> double"),
    ("math_@max_int", "(int) -> int"),
    ("math_@max_uint", "(uint) -> uint"),
    ("math_@max_double_double", "(double, double) -> double"),
    ("math_@max_int_int", "(int, int) -> int"),
    ("math_@max_uint_uint", "(uint, uint) -> uint"),
    ("math_@max_int_uint", "(int, uint) -> dyn"),
    ("math_@max_int_double", "(int, double) -> dyn"),
    ("math_@max_double_int", "(double, int) -> dyn"),
    ("math_@max_double_uint", "(double, uint) -> dyn"),
    ("math_@max_uint_int", "(uint, int) -> dyn"),
    ("math_@max_uint_double", "(uint, double) -> dyn"),
    ("math_@max_list_double", "(list(double)) -> double"),
    ("math_@max_list_int", "(list(int)) -> int"),
    ("math_@max_list_uint", "(list(uint)) -> uint"),
];

const MIN: [(&str, &str); 15] = [
    ("math_@min_double", "(double) -> double"),
    ("math_@min_int", "(int) -> int"),
    ("math_@min_uint", "(uint) -> uint"),
    ("math_@min_double_double", "(double, double) -> double"),
    ("math_@min_int_int", "(int, int) -> int"),
    ("math_@min_uint_uint", "(uint, uint) -> uint"),
    ("math_@min_int_uint", "(int, uint) -> dyn"),
    ("math_@min_int_double", "(int, double) -> dyn"),
    ("math_@min_double_int", "(double, int) -> dyn"),
    ("math_@min_double_uint", "(double, uint) -> dyn"),
    ("math_@min_uint_int", "(uint, int) -> dyn"),
    ("math_@min_uint_double", "(uint, double) -> dyn"),
    ("math_@min_list_double", "(list(double)) -> double"),
    ("math_@min_list_int", "(list(int)) -> int"),
    ("math_@min_list_uint", "(list(uint)) -> uint"),
];

const FUNCTIONS: [Entry; 25] = [
    entry("math.ceil", "math_ceil_double", "(double) -> double", |args| double(args, f64::ceil)),
    entry("math.floor", "math_floor_double", "(double) -> double", |args| double(args, f64::floor)),
    entry("math.round", "math_round_double", "(double) -> double", |args| double(args, f64::round)),
    entry("math.trunc", "math_trunc_double", "(double) -> double", |args| double(args, f64::trunc)),
    entry("math.isInf", "math_isInf_double", "(double) -> bool", |args| test(args, f64::is_infinite)),
    entry("math.isNaN", "math_isNaN_double", "(double) -> bool", |args| test(args, f64::is_nan)),
    entry("math.isFinite", "math_isFinite_double", "(double) -> bool", |args| {
        test(args, f64::is_finite)
    }),
    entry("math.abs", "math_abs_double", "(double) -> double", absolute),
    entry("math.abs", "math_abs_int", "(int) -> int", absolute),
    entry("math.abs", "math_abs_uint", "(uint) -> uint", absolute),
    entry("math.sign", "math_sign_double", "(double) -> double", sign),
    entry("math.sign", "math_sign_int", "(int) -> int", sign),
    entry("math.sign", "math_sign_uint", "(uint) -> uint", sign),
    entry("math.bitAnd", "math_bitAnd_int_int", "(int, int) -> int", |args| bits(args, |a, b| a & b)),
    entry("math.bitAnd", "math_bitAnd_uint_uint", "(uint, uint) -> uint", |args| {
        bits(args, |a, b| a & b)
    }),
    entry("math.bitOr", "math_bitOr_int_int", "(int, int) -> int", |args| bits(args, |a, b| a | b)),
    entry("math.bitOr", "math_bitOr_uint_uint", "(uint, uint) -> uint", |args| {
        bits(args, |a, b| a | b)
    }),
    entry("math.bitXor", "math_bitXor_int_int", "(int, int) -> int", |args| bits(args, |a, b| a ^ b)),
    entry("math.bitXor", "math_bitXor_uint_uint", "(uint, uint) -> uint", |args| {
        bits(args, |a, b| a ^ b)
    }),
    entry("math.bitNot", "math_bitNot_int_int", "(int) -> int", invert),
    entry("math.bitNot", "math_bitNot_uint_uint", "(uint) -> uint", invert),
    entry("math.bitShiftLeft", "math_bitShiftLeft_int_int", "(int, int) -> int", |args| {
        shift(args, "math.bitShiftLeft", u64::checked_shl)
    }),
    entry("math.bitShiftLeft", "math_bitShiftLeft_uint_int", "(uint, int) -> uint", |args| {
        shift(args, "math.bitShiftLeft", u64::checked_shl)
    }),
    entry("math.bitShiftRight", "math_bitShiftRight_int_int", "(int, int) -> int", |args| {
        shift(args, "math.bitShiftRight", u64::checked_shr)
    }),
    entry("math.bitShiftRight", "math_bitShiftRight_uint_int", "(uint, int) -> uint", |args| {
        shift(args, "math.bitShiftRight", u64::checked_shr)
    }),
];

const ROOTS: [Entry; 3] = [
    entry("math.sqrt", "math_sqrt_double", "(double) -> double", root),
    entry("math.sqrt", "math_sqrt_int", "(int) -> double", root),
    entry("math.sqrt", "math_sqrt_uint", "(uint) -> double", root),
];

fn extreme<'a>(args: &[Value<'a>], replaced: Ordering) -> Outcome<'a> {
    let items: Vec<Value<'a>> = match args {
        [Value::List(list)] => list.iter().collect::<Result<_, _>>()?,
        numbers => numbers.to_vec(),
    };
    let name = if replaced == Ordering::Less {
        "math.@max"
    } else {
        "math.@min"
    };
    let mut best: Option<Value<'a>> = None;
    for item in items {
        if !matches!(item, Value::Int(_) | Value::Uint(_) | Value::Double(_)) {
            return Err(EvalError::no_such_overload());
        }
        best = match best {
            Some(known) if order::compare(&known, &item)? != replaced => Some(known),
            _ => Some(item),
        };
    }
    best.ok_or_else(|| EvalError::new(format!("{name}(list) argument must not be empty")))
}

fn double<'a>(args: &[Value<'a>], with: fn(f64) -> f64) -> Outcome<'a> {
    match args {
        [Value::Double(number)] => Ok(Value::Double(with(*number))),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn test<'a>(args: &[Value<'a>], with: fn(f64) -> bool) -> Outcome<'a> {
    match args {
        [Value::Double(number)] => Ok(Value::Bool(with(*number))),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn absolute<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Double(number)] => Ok(Value::Double(number.abs())),
        [Value::Int(number)] => number.checked_abs().map(Value::Int).ok_or_else(|| EvalError::new("integer overflow")),
        [Value::Uint(number)] => Ok(Value::Uint(*number)),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn sign<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Double(number)] if number.is_nan() => Ok(Value::Double(*number)),
        [Value::Double(number)] => Ok(Value::Double(if *number == 0.0 { 0.0 } else { number.signum() })),
        [Value::Int(number)] => Ok(Value::Int(number.signum())),
        [Value::Uint(number)] => Ok(Value::Uint((*number).min(1))),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn bits<'a>(args: &[Value<'a>], with: fn(u64, u64) -> u64) -> Outcome<'a> {
    match args {
        [Value::Int(one), Value::Int(other)] => Ok(Value::Int(with(*one as u64, *other as u64) as i64)),
        [Value::Uint(one), Value::Uint(other)] => Ok(Value::Uint(with(*one, *other))),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn invert<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Int(number)] => Ok(Value::Int(!number)),
        [Value::Uint(number)] => Ok(Value::Uint(!number)),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn shift<'a>(args: &[Value<'a>], name: &str, with: fn(u64, u32) -> Option<u64>) -> Outcome<'a> {
    let (bits, places) = match args {
        [Value::Int(bits), Value::Int(places)] => (*bits as u64, *places),
        [Value::Uint(bits), Value::Int(places)] => (*bits, *places),
        _ => return Err(EvalError::no_such_overload()),
    };
    if places < 0 {
        return Err(EvalError::new(format!("{name}() negative offset: {places}")));
    }
    let shifted = u32::try_from(places).ok().and_then(|places| with(bits, places)).unwrap_or(0);
    Ok(match args[0] {
        Value::Int(_) => Value::Int(shifted as i64),
        _ => Value::Uint(shifted),
    })
}

fn root<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Double(match args {
        [Value::Double(number)] => number.sqrt(),
        [Value::Int(number)] => (*number as f64).sqrt(),
        [Value::Uint(number)] => (*number as f64).sqrt(),
        _ => return Err(EvalError::no_such_overload()),
    }))
}
