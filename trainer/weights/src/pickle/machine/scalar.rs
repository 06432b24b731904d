//! Instructions that push one plain value.

use super::super::node::Node;
use super::super::opcode as op;
use super::super::stream::Stream;
use crate::error::Problem;

/// The value that an instruction pushes.
pub(super) fn scalar(stream: &mut Stream<'_>, code: u8) -> Result<Node, Problem> {
    Ok(match code {
        op::NONE => Node::None,
        op::NEWTRUE => Node::Bool(true),
        op::NEWFALSE => Node::Bool(false),
        op::BININT => Node::Int(i32::from_le_bytes(stream.array()?).into()),
        op::BININT1 => Node::Int(stream.byte()?.into()),
        op::BININT2 => Node::Int(stream.u16()?.into()),
        op::LONG1 => {
            let length = stream.byte()?;
            integer(stream.take(length.into())?)
        }
        op::LONG4 => {
            let length = stream.u32()?;
            integer(stream.take(length.into())?)
        }
        op::INT => match stream.line()? {
            "01" => Node::Bool(true),
            "00" => Node::Bool(false),
            text => Node::Int(parse(stream, text)?),
        },
        op::LONG => {
            let text = stream.line()?;
            Node::Int(parse(stream, text.trim_end_matches('L'))?)
        }
        op::FLOAT => {
            let text = stream.line()?;
            Node::Float(parse(stream, text)?)
        }
        op::BINFLOAT => Node::Float(f64::from_be_bytes(stream.array()?)),
        op::STRING => {
            let text = stream.line()?;
            Node::Str(text.trim_matches(['\'', '"']).to_owned())
        }
        op::UNICODE => Node::Str(stream.line()?.to_owned()),
        op::SHORT_BINSTRING | op::SHORT_BINUNICODE => {
            let length = stream.byte()?;
            Node::Str(stream.text(length.into())?.to_owned())
        }
        op::BINSTRING | op::BINUNICODE => {
            let length = stream.u32()?;
            Node::Str(stream.text(length.into())?.to_owned())
        }
        op::BINUNICODE8 => {
            let length = stream.u64()?;
            Node::Str(stream.text(length)?.to_owned())
        }
        op::SHORT_BINBYTES => {
            let length = stream.byte()?;
            Node::Bytes(stream.take(length.into())?.to_vec())
        }
        op::BINBYTES => {
            let length = stream.u32()?;
            Node::Bytes(stream.take(length.into())?.to_vec())
        }
        op::BINBYTES8 | op::BYTEARRAY8 => {
            let length = stream.u64()?;
            Node::Bytes(stream.take(length)?.to_vec())
        }
        _ => return Err(stream.damaged(format!("has the unknown instruction {code:#04x}"))),
    })
}

/// Little-endian two's complement of any length, as LONG1 writes it.
fn integer(bytes: &[u8]) -> Node {
    if bytes.len() > 8 {
        return Node::BigInt(bytes.to_vec());
    }
    let negative = bytes.last().is_some_and(|last| *last >= 0x80);
    let mut wide = [if negative { 0xff } else { 0 }; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    Node::Int(i64::from_le_bytes(wide))
}

pub(super) fn parse<T: std::str::FromStr>(stream: &Stream<'_>, text: &str) -> Result<T, Problem> {
    text.parse().map_err(|_| {
        stream.damaged(format!(
            "has “{}” instead of a number",
            text.chars().take(40).collect::<String>().escape_debug()
        ))
    })
}
