//! A SOCKS 5 proxy, as VPN programs run them, for one test. It resolves all names to the test's server, so a download
//! through it succeeds only if the client leaves the resolution of names to the proxy.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;

/// Starts a proxy that connects everything to `server` (`127.0.0.1:8080`), and returns its address.
pub(crate) fn start_proxy(server: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for client in listener.incoming() {
            let server = server.clone();
            thread::spawn(move || serve(client.unwrap(), &server));
        }
    });
    address
}

/// RFC 1928: methods, request, and then bytes in both directions.
fn serve(mut client: TcpStream, server: &str) -> io::Result<()> {
    let mut head = [0; 2];
    client.read_exact(&mut head)?;
    client.read_exact(&mut vec![0; head[1].into()])?;
    client.write_all(&[5, 0])?;
    let mut request = [0; 5];
    client.read_exact(&mut request)?;
    let [5, 1, 0, 3, length] = request else {
        return Err(io::Error::other("not a request to connect to a name"));
    };
    client.read_exact(&mut vec![0; usize::from(length) + 2])?;
    client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0])?;
    let mut server = TcpStream::connect(server)?;
    let (mut from, mut to) = (server.try_clone()?, client.try_clone()?);
    thread::spawn(move || {
        io::copy(&mut from, &mut to)?;
        to.shutdown(Shutdown::Write)
    });
    io::copy(&mut client, &mut server)?;
    server.shutdown(Shutdown::Write)
}
