//! How values of several ranks become one.

use std::ffi::c_int;

use tch::{Device, Kind};

/// An operation over the ranks, element by element.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum ReduceOp {
    /// The sum.
    #[default]
    Sum,
    /// The mean, of floating-point numbers only.
    Avg,
    /// The product.
    Product,
    /// The smallest value.
    Min,
    /// The largest value.
    Max,
    /// Bitwise and, of integers and booleans only. NCCL has none.
    BitAnd,
    /// Bitwise or, of integers and booleans only. NCCL has none.
    BitOr,
    /// Bitwise exclusive or, of integers and booleans only. NCCL has none.
    BitXor,
    /// The sum of the values times this factor. Over NCCL only, of floating-point numbers only.
    PremulSum(f64),
}

impl ReduceOp {
    /// The number in `c10d::ReduceOp::RedOpType`, and the factor.
    pub(crate) fn code(self) -> (c_int, f64) {
        match self {
            Self::Sum => (0, 0.0),
            Self::Avg => (1, 0.0),
            Self::Product => (2, 0.0),
            Self::Min => (3, 0.0),
            Self::Max => (4, 0.0),
            Self::BitAnd => (5, 0.0),
            Self::BitOr => (6, 0.0),
            Self::BitXor => (7, 0.0),
            Self::PremulSum(factor) => (8, factor),
        }
    }

    /// Why values of this kind on this device cannot be reduced this way, with any backend. libtorch notices some of it
    /// only in the background, and then the next operations of the group may fail as well.
    pub(crate) fn refusal(self, kind: Kind, device: Device) -> Option<String> {
        let floating = matches!(kind, Kind::Half | Kind::BFloat16 | Kind::Float | Kind::Double);
        let integral =
            matches!(kind, Kind::Uint8 | Kind::Int8 | Kind::Int16 | Kind::Int | Kind::Int64 | Kind::Bool);
        match self {
            Self::PremulSum(_) if device == Device::Cpu => {
                Some("PremulSum needs NCCL, which works on tensors on a GPU only".to_owned())
            }
            Self::Avg | Self::PremulSum(_) if !floating => {
                Some(format!("{self:?} needs floating-point numbers, not {kind:?}"))
            }
            Self::BitAnd | Self::BitOr | Self::BitXor if !integral => {
                Some(format!("{self:?} needs integers or booleans, not {kind:?}"))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_that_do_not_fit_are_refused() {
        let refusal = ReduceOp::BitAnd.refusal(Kind::Float, Device::Cpu);
        assert_eq!(refusal.as_deref(), Some("BitAnd needs integers or booleans, not Float"));
        let refusal = ReduceOp::Avg.refusal(Kind::Int64, Device::Cpu);
        assert_eq!(refusal.as_deref(), Some("Avg needs floating-point numbers, not Int64"));
        assert_eq!(ReduceOp::BitXor.refusal(Kind::Bool, Device::Cpu), None);
        assert_eq!(ReduceOp::Max.refusal(Kind::Int64, Device::Cpu), None);
        assert_eq!(ReduceOp::PremulSum(0.5).refusal(Kind::Float, Device::Cuda(0)), None);
    }
}
