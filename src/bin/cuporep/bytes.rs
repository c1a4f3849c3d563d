//! Numbers of bytes on the command line.

/// Reads `15GiB`, `1.5 TiB`, `4096`.
pub fn parse(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..split], text[split..].trim_start());
    let shift = match unit {
        "" | "B" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        "TiB" => 40,
        _ => return Err(format!("{unit:?} is not a unit; known are KiB, MiB, GiB and TiB, and bytes without one")),
    };
    let number: f64 = number.parse().map_err(|_| format!("{number:?} is not a number"))?;
    let bytes = number * f64::from(1u32 << 10).powi(shift / 10);
    if bytes < 1.0 || bytes > 2f64.powi(60) {
        return Err("out of all proportion".into());
    }
    Ok(bytes as u64)
}

/// With a unit.
pub fn show(bytes: u64) -> String {
    match bytes {
        0..0x4000_0000 => format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
        _ => format!("{:.2} GiB", bytes as f64 / f64::from(1 << 30)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_powers_of_1024() {
        for (text, bytes) in [("1", 1), ("4096", 4096), ("2KiB", 2048), ("15GiB", 15 << 30), ("1.5 TiB", 3 << 39)] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for wrong in ["", "GiB", "15GB", "15 gib", "1.2.3", "-1", "0", "9999999TiB"] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(show(3 << 29), "1.50 GiB");
        assert_eq!(show(3 << 19), "1.5 MiB");
    }
}
