use super::*;
use proptest::prelude::*;

fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).unwrap()
}

fn sum(current: &str, increment: &str) -> Result<String, DecimalError> {
    add_decimal(current.as_bytes(), increment.as_bytes()).map(|text| String::from_utf8(text).unwrap())
}

#[test]
fn integers_are_parsed_strictly() {
    for text in ["0", "7", "-1", "10", "9223372036854775807", "-9223372036854775808", "1000000000000000000"] {
        assert_eq!(parse_i64(text.as_bytes()), text.parse().ok(), "{text}");
    }
    let refused = [
        "",
        "-",
        "+1",
        "-0",
        "00",
        "01",
        "-01",
        " 1",
        "1 ",
        "1a",
        "0x1",
        "1.0",
        "1e3",
        "--1",
        "a",
        "0 ",
        "1\0",
        "9223372036854775808",
        "-9223372036854775809",
        "18446744073709551616",
        "99999999999999999999",
        "12345678901234567890123",
    ];
    for text in refused {
        assert_eq!(parse_i64(text.as_bytes()), None, "{text:?}");
    }
}

#[test]
fn floats_have_the_forms_of_strtod() {
    let accepted: [(&str, f64); 26] = [
        ("0", 0.0),
        ("-0", -0.0),
        ("1", 1.0),
        ("+1", 1.0),
        ("-1.5", -1.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("1E5", 1e5),
        ("1e-5", 1e-5),
        ("00012", 12.0),
        ("0e400", 0.0),
        ("0e-99999999999", 0.0),
        ("inf", f64::INFINITY),
        ("+inf", f64::INFINITY),
        ("-INF", f64::NEG_INFINITY),
        ("-InFiNiTy", f64::NEG_INFINITY),
        ("0x10", 16.0),
        ("0x.8", 0.5),
        ("-0x1.8P1", -3.0),
        ("0x1p-1074", 5e-324),
        ("0x0p5", 0.0),
        ("0x20000000000001", 9007199254740992.0),
        ("0x20000000000001.0000000000000000000000001", 9007199254740994.0),
        ("0x1.fffffffffffff8p0", 2.0),
        ("1e-320", 1e-320),
        ("1.7976931348623158e308", f64::MAX),
    ];
    for (text, value) in accepted {
        assert_eq!(parse_f64(text.as_bytes()).map(f64::to_bits), Some(value.to_bits()), "{text}");
    }
    let refused = [
        "",
        "+",
        "-",
        ".",
        " 1",
        "1 ",
        "\t1",
        "1\n",
        "1\0",
        "nan",
        "-nan",
        "NAN",
        "nan(12)",
        "infinit",
        "infinity ",
        "in",
        "e5",
        ".e1",
        "1e",
        "1e+",
        "1e1.0",
        "1_0",
        "1d",
        "--1",
        "+-1",
        "1e309",
        "-1e400",
        "1e99999999999999999999",
        "1e-400",
        "2e-324",
        "0x",
        "0x.",
        "0x1p",
        "0x1p+",
        "0x1g",
        "0x1p1024",
        "0x1p-1076",
        "0x1p99999999999999999999",
        "1\u{e9}",
    ];
    for text in refused {
        assert_eq!(parse_f64(text.as_bytes()), None, "{text:?}");
    }
}

#[test]
fn scores_are_written_in_their_shortest_form() {
    let forms: [(f64, &str); 34] = [
        (0.0, "0"),
        (-0.0, "-0"),
        (1.0, "1"),
        (-3.0, "-3"),
        (0.1, "0.1"),
        (0.1 + 0.2, "0.30000000000000004"),
        (-1.5, "-1.5"),
        (1e17, "100000000000000000"),
        (9007199254740993.0, "9007199254740992"),
        (4e18, "4000000000000000000"),
        (5e18, "5e+18"),
        (5.123456789012e18, "5123456789012000000"),
        (1.2345678901e18 * 10.0, "1.2345678901e+19"),
        (1e20, "1e+20"),
        (1e21, "1e+21"),
        (1.5e21, "1.5e+21"),
        (18446744073709551615.0, "18446744073709552000"),
        (75959.5678, "75959.5678"),
        (123456.1234567, "1.234561234567e+5"),
        (123456.123456, "123456.123456"),
        (1234.123456789, "1234.123456789"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (1.5e-5, "0.000015"),
        (1.5e-6, "1.5e-6"),
        (0.00123456789, "0.00123456789"),
        (0.000123456789, "1.23456789e-4"),
        (1e100, "1e+100"),
        (-1.5e-300, "-1.5e-300"),
        (5e-324, "5e-324"),
        (f64::MAX, "1.7976931348623157e+308"),
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
        (f64::NAN, "nan"),
    ];
    for (value, text) in forms {
        assert_eq!(written(|out| write_f64(value, out)), text, "{value:e}");
    }
}

/// The expected sums are replies of `INCRBYFLOAT` of Redis 7.0 on x86-64.
#[test]
fn float_increments_are_those_of_extended_precision() {
    let sums: [(&str, &str, &str); 30] = [
        ("0.1", "0.2", "0.3"),
        ("10.50", "0.1", "10.6"),
        ("3.0e3", "0", "3000"),
        ("5.0e3", "2.0e2", "5200"),
        ("1e17", "0.1", "100000000000000000.1015625"),
        ("5.0e-300", "1", "1"),
        ("-0", "-0", "0"),
        ("0", "-0", "0"),
        ("1", "-1", "0"),
        ("0.1", "-0.1", "0"),
        ("-1e-30", "0", "0"),
        ("9007199254740993", "0.5", "9007199254740993.5"),
        ("18446744073709551615", "1", "18446744073709551616"),
        ("1e19", "0.5", "10000000000000000000"),
        ("18446744073709551617", "0", "18446744073709551616"),
        ("1e400", "-1e400", "0"),
        ("0x1p-70", "0", "0"),
        ("0x1p-18", "0", "0.00000381469726562"),
        ("0.99999999999999999", "0.000000000000000009", "1"),
        ("123456789.987654321", "0.000000012", "123456789.98765433299558936"),
        ("1e30", "1", "1000000000000000000024696061952"),
        ("3.14159265358979323846264338327950288", "0", "3.14159265358979324"),
        ("1e-17", "0", "0.00000000000000001"),
        ("5e-18", "0", "0"),
        ("4.9e-18", "0", "0"),
        ("0x1.8p-58", "0", "0.00000000000000001"),
        ("1", "1e-20", "1"),
        ("-1.5", "0.25", "-1.25"),
        ("1e27", "0.5", "1000000000000000000000000000"),
        ("3.6451995318824746025e-4951", "0", "0"),
    ];
    for (current, increment, expected) in sums {
        assert_eq!(sum(current, increment).as_deref(), Ok(expected), "{current} + {increment}");
    }
}

#[test]
fn float_increments_refuse_what_is_no_float() {
    assert_eq!(sum("a", "1"), Err(DecimalError::CurrentNotFloat));
    assert_eq!(sum("a", "b"), Err(DecimalError::CurrentNotFloat));
    assert_eq!(sum("1", " 1"), Err(DecimalError::IncrementNotFloat));
    assert_eq!(sum("1", "nan"), Err(DecimalError::IncrementNotFloat));
    assert_eq!(sum("1", "1e5000"), Err(DecimalError::IncrementNotFloat));
    assert_eq!(sum("1", "1e-5000"), Err(DecimalError::IncrementNotFloat));
    assert_eq!(sum("1", &"1".repeat(5120)), Err(DecimalError::IncrementNotFloat));
    assert_eq!(sum("1", "inf"), Err(DecimalError::ResultNotFinite));
    assert_eq!(sum("-inf", "inf"), Err(DecimalError::ResultNotFinite));
    assert_eq!(sum("1.1e4932", "1.1e4932"), Err(DecimalError::ResultNotFinite));
}

#[test]
fn human_floats_have_no_exponent() {
    let forms: [(f64, &str); 10] = [
        (0.0, "0"),
        (-0.0, "0"),
        (3.0, "3"),
        (-0.5, "-0.5"),
        (0.1, "0.10000000000000001"),
        (1e-17, "0.00000000000000001"),
        (-1e-18, "0"),
        (1e22, "10000000000000000000000"),
        (0.9999999999999999, "0.99999999999999989"),
        (f64::NEG_INFINITY, "-inf"),
    ];
    for (value, text) in forms {
        assert_eq!(written(|out| write_f64_human(value, out)), text, "{value:e}");
    }
    assert_eq!(written(|out| write_f64_human(f64::NAN, out)), "nan");
}

proptest! {
    #[test]
    fn integers_round_trip(value: i64, shift in 0u32..64) {
        let value = value >> shift;
        let text = written(|out| write_i64(value, out));
        prop_assert_eq!(&text, &value.to_string());
        prop_assert_eq!(decimal_len(value), text.len());
        prop_assert_eq!(parse_i64(text.as_bytes()), Some(value));
    }

    #[test]
    fn integer_parsing_accepts_only_what_it_writes(text in "[-+ 0-9]{0,21}") {
        let canonical = text.parse::<i64>().ok().filter(|value| value.to_string() == text);
        prop_assert_eq!(parse_i64(text.as_bytes()), canonical);
    }

    #[test]
    fn floats_round_trip(bits: u64) {
        let value = f64::from_bits(bits);
        prop_assume!(!value.is_nan());
        let text = written(|out| write_f64(value, out));
        prop_assert_eq!(parse_f64(text.as_bytes()).map(f64::to_bits), Some(bits));
    }

    #[test]
    fn float_parsing_never_panics(bytes: Vec<u8>, text in "[-+]?(0x)?[0-9a-f.]{0,50}([eEpP][-+]?[0-9]{1,22})?") {
        for bytes in [&bytes[..], text.as_bytes()] {
            let _ = parse_f64(bytes);
            let _ = add_decimal(bytes, bytes);
        }
    }

    #[test]
    fn hexadecimal_and_decimal_doubles_agree(bits: u64) {
        let value = f64::from_bits(bits & !(1 << 63));
        prop_assume!(value.is_finite());
        let (fraction, biased) = (bits & ((1 << 52) - 1), (bits >> 52) & 0x7ff);
        let significand = if biased == 0 { fraction } else { fraction | 1 << 52 };
        let text = format!("0x{significand:x}p{}", biased.max(1) as i64 - 1075);
        prop_assert_eq!(parse_f64(text.as_bytes()), Some(value));
    }

    /// Sums of integers which need no more than 64 bits are exact.
    #[test]
    fn integer_sums_are_exact(left: i64, right: i64) {
        let expected = i128::from(left) + i128::from(right);
        prop_assert_eq!(sum(&left.to_string(), &right.to_string()), Ok(expected.to_string()));
    }

    #[test]
    fn sums_do_not_depend_on_order(left: f64, right: f64) {
        let (left, right) = (format!("{left:e}"), format!("{right:e}"));
        let (Ok(forth), Ok(back)) = (sum(&left, &right), sum(&right, &left)) else { return Ok(()) };
        prop_assert_eq!(forth, back);
    }

    /// Both ways through the big numbers: the decimal of a power of two, parsed, is that power of two.
    #[test]
    fn large_numbers_survive_their_decimal_form(significand: u64, exponent in 0i64..16000) {
        let hexadecimal = format!("0x{significand:x}p{exponent}");
        let decimal = sum(&hexadecimal, "0").unwrap();
        prop_assert_eq!(Extended::parse(decimal.as_bytes()), Extended::parse(hexadecimal.as_bytes()));
    }
}
