//! Another Rust archive in the same program, as a node has one: with its own std and blst, and panics that it catches.

use std::ffi::c_void;

/// Computes with blst and catches a panic of its own. 0 if all is well.
#[no_mangle]
pub extern "C" fn neighbour_works() -> i32 {
    std::panic::set_hook(Box::new(|_| ()));
    let key = blst::min_pk::SecretKey::key_gen(&[7; 32], &[]).unwrap();
    let (message, domain) = (b"message", b"domain");
    let signature = key.sign(message, domain, &[]);
    let verified = signature.verify(true, message, domain, &[], &key.sk_to_pk(), true);
    let caught = std::panic::catch_unwind(|| panic!("neighbour's {}", verified as i32));
    let text = caught.unwrap_err().downcast_ref::<String>().cloned();
    i32::from(verified != blst::BLST_ERROR::BLST_SUCCESS || text.as_deref() != Some("neighbour's 0"))
}

/// A progress callback that panics, in this runtime.
#[no_mangle]
pub unsafe extern "C-unwind" fn neighbour_progress(_user: *mut c_void, _event: *const c_void) {
    panic!("neighbour's callback");
}
