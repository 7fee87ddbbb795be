//! What a kernel's epilogue and dot take by name, and what is bound to it.

use std::fmt;
use std::sync::Arc;

use spmv_codegen::{Operand, Program};

use crate::backend::Allocation;
use crate::error::Error;
use crate::scalar::{Element, Scalar};
use crate::vector::{Owner, Vector};

/// The vectors and numbers of an epilogue and a dot, in the order in which a kernel is given them.
#[derive(Debug)]
pub(crate) struct BoundOperands {
    operands: Vec<Operand>,
    /// What is bound to each; `None` where nothing was yet.
    bound: Vec<Option<Bound>>,
    /// Addresses and bits of numbers, as a kernel takes them.
    slots: Vec<u64>,
}

/// A vector's memory, kept alive; a number needs none.
struct Bound {
    _owner: Option<Arc<Owner>>,
    bytes: usize,
}

impl fmt::Debug for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.bytes)
    }
}

impl BoundOperands {
    /// Those of a program whose buffers are these.
    pub(crate) fn new(program: &Program, buffers: &[Allocation]) -> BoundOperands {
        let operands = program.operands.clone();
        let slot = |operand: &Operand| match operand {
            Operand::Buffer(index) => (buffers[*index].address(), Some(Bound { _owner: None, bytes: 0 })),
            _ => (0, None),
        };
        let (slots, bound) = operands.iter().map(slot).unzip();
        BoundOperands { slots, bound, operands }
    }

    /// Takes over what the user bound to those of the same kernel.
    pub(crate) fn keep_bound(&mut self, other: BoundOperands) {
        for (place, (slot, bound)) in other.slots.into_iter().zip(other.bound).enumerate() {
            if !matches!(self.operands[place], Operand::Buffer(_)) {
                (self.slots[place], self.bound[place]) = (slot, bound);
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.operands.len()
    }

    pub(crate) fn slots(&self) -> &[u64] {
        &self.slots
    }

    pub(crate) fn set_vector<V: Element>(
        &mut self,
        name: &str,
        num_rows: usize,
        vector: &Vector<V>,
    ) -> Result<(), Error> {
        let place = self.place(name, "vector")?;
        if let Operand::Vector { value: expected, .. } = self.operands[place]
            && expected != V::TYPE
        {
            return Err(Error::OperandType { name: name.into(), expected, got: V::TYPE });
        }
        if vector.len() != num_rows {
            return Err(Error::OperandLength { name: name.into(), expected: num_rows, got: vector.len() });
        }
        self.slots[place] = vector.address();
        self.bound[place] = Some(Bound { _owner: Some(vector.owner()), bytes: size_of::<V>() * num_rows });
        Ok(())
    }

    pub(crate) fn set_scalar(&mut self, name: &str, number: Scalar) -> Result<(), Error> {
        let place = self.place(name, "scalar")?;
        if let Operand::Scalar { value, .. } = self.operands[place] {
            if !number.fits(value) {
                return Err(Error::OperandScalar { name: name.into(), expected: value, got: number });
            }
            [self.slots[place], _] = number.bits(value);
        }
        self.bound[place] = Some(Bound { _owner: None, bytes: 0 });
        Ok(())
    }

    /// Whether everything is bound, and y is none of it.
    pub(crate) fn check(&self, y: u64, y_bytes: usize) -> Result<(), Error> {
        for ((operand, bound), address) in self.operands.iter().zip(&self.bound).zip(&self.slots) {
            let (name, kind, method) = match operand {
                Operand::Vector { name, .. } => (name, "vector", "set_vector"),
                Operand::Scalar { name, .. } => (name, "scalar", "set_scalar"),
                Operand::Buffer(_) => continue,
            };
            let Some(bound) = bound else {
                return Err(Error::UnboundOperand { kind, name: name.clone(), method });
            };
            if *address < y + y_bytes as u64 && y < *address + bound.bytes as u64 && bound.bytes > 0 {
                return Err(Error::OperandIsResult { name: name.clone() });
            }
        }
        Ok(())
    }

    /// The place of a parameter of this name and kind.
    fn place(&self, name: &str, kind: &'static str) -> Result<usize, Error> {
        let names = || {
            self.operands.iter().map(|operand| match operand {
                Operand::Vector { name, .. } if kind == "vector" => Some(name.as_str()),
                Operand::Scalar { name, .. } if kind == "scalar" => Some(name.as_str()),
                _ => None,
            })
        };
        names().position(|found| found == Some(name)).ok_or_else(|| {
            let allowed = names().flatten().map(str::to_owned).collect();
            Error::UnknownOperand { kind, name: name.to_owned(), allowed }
        })
    }
}
