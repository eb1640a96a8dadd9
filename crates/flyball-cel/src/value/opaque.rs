//! Values of types that a library brings.

use crate::eval::EvalError;
use crate::typing::Type;
use std::any::Any;
use std::fmt::Debug;

/// A value that only the functions of its library understand.
pub trait Opaque: Any + Debug + Send + Sync {
    /// Its type, as the library declares it.
    fn type_of(&self) -> Type;

    /// Whether it equals another value of a library.
    ///
    /// # Errors
    /// If the two cannot be compared.
    fn equals(&self, other: &dyn Opaque) -> Result<bool, EvalError>;

    /// How large it is for the purpose of cost; one if it does not tell.
    fn size(&self) -> Option<usize> {
        None
    }

    /// The value as messages show it.
    fn show(&self) -> String {
        format!("{self:?}")
    }
}

impl dyn Opaque {
    /// The value as its own type.
    pub fn downcast_ref<T: Opaque>(&self) -> Option<&T> {
        let any: &dyn Any = self;
        any.downcast_ref()
    }
}

/// An error that is a value until something takes it out of an optional.
#[derive(Debug)]
pub(crate) struct Failed(pub EvalError);

impl Opaque for Failed {
    fn type_of(&self) -> Type {
        Type::opaque("error")
    }

    fn equals(&self, _other: &dyn Opaque) -> Result<bool, EvalError> {
        Err(self.0.clone())
    }
}
