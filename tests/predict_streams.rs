//! Streams of servers with `yolo predict`: RTSP as cameras speak it, and HTTP. The servers are a few lines here; ffmpeg
//! makes their pictures.

// Ranks run on Linux only; on Windows, in WSL.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/predictions.rs"]
mod predictions;
#[path = "support/user.rs"]
mod user;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};

use predictions::{PREDICT, has_ffmpeg, names, until_interrupted, with_detector};

/// Pictures at ten per second for a minute, in this form.
fn pictures(form: &str) -> Child {
    let source =
        "-nostdin -v error -re -f lavfi -i testsrc=size=64x64:rate=10:duration=60 -c:v mpeg2video -f";
    Command::new("ffmpeg")
        .args(source.split(' ').chain(form.split(' ')))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Answers one client in RTSP, with the packets in the same connection.
fn rtsp(mut client: TcpStream) {
    let mut requests = BufReader::new(client.try_clone().unwrap());
    let packets = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = packets.local_addr().unwrap().port();
    loop {
        let (mut request, mut number) = (String::new(), String::new());
        loop {
            let mut line = String::new();
            if requests.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if let Some(value) = line.strip_prefix("CSeq: ") {
                number = value.trim().to_owned();
            }
            if line.trim().is_empty() {
                break;
            }
            if request.is_empty() {
                request = line;
            }
        }
        let method = request.split(' ').next().unwrap_or_default();
        let description = "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=camera\r\nc=IN IP4 0.0.0.0\r\nt=0 0\r\n\
                           m=video 0 RTP/AVP 32\r\na=control:video\r\n";
        let (head, body) = match method {
            "OPTIONS" => ("Public: OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN\r\n".to_owned(), ""),
            "DESCRIBE" => {
                let length = description.len();
                (format!("Content-Type: application/sdp\r\nContent-Length: {length}\r\n"), description)
            }
            "SETUP" => ("Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\nSession: 1\r\n".to_owned(), ""),
            _ => ("Session: 1\r\n".to_owned(), ""),
        };
        client
            .write_all(format!("RTSP/1.0 200 OK\r\nCSeq: {number}\r\n{head}\r\n{body}").as_bytes())
            .unwrap();
        if method == "PLAY" {
            let mut source = pictures(&format!("rtp rtp://127.0.0.1:{port}"));
            let mut packet = [0; 2048];
            while let Ok(length) = packets.recv(&mut packet) {
                let mut framed = vec![b'$', 0];
                framed.extend((length as u16).to_be_bytes());
                framed.extend(&packet[..length]);
                if client.write_all(&framed).is_err() {
                    break;
                }
            }
            let _ = source.kill();
            let _ = source.wait();
            return;
        }
    }
}

/// Answers one client in HTTP.
fn http(mut client: TcpStream) {
    let mut request = [0; 4096];
    let _ = client.read(&mut request);
    let _ = client.write_all(b"HTTP/1.0 200 OK\r\nContent-Type: video/mp2t\r\n\r\n");
    let mut source = pictures("mpegts pipe:1");
    let _ = std::io::copy(&mut source.stdout.take().unwrap(), &mut client);
    let _ = source.kill();
    let _ = source.wait();
}

/// A server on a port of this machine, which answers each client on a thread.
fn serve(answer: fn(TcpStream)) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || answer(client));
        }
    });
    port
}

#[test]
fn a_camera_of_the_network_is_followed_until_ctrl_c() {
    if !has_ffmpeg() {
        return;
    }
    let user = with_detector("--epochs 1");
    let port = serve(rtsp);
    let address = format!("rtsp://me:secret@127.0.0.1:{port}/live");
    let running = user.start(&format!("{PREDICT} {address} --name camera"));
    let said = until_interrupted(&user, running, "camera");
    assert!(said.contains(&format!("video 1/1 (2) rtsp://127.0.0.1:{port}/live: ")), "{said}");
    assert!(!said.contains("secret"), "{said}");
    let film = user.path().join(format!("runs/detect/camera/127_0_0_1_{port}_live.mp4"));
    assert!(film.is_file(), "{said}");
}

#[test]
fn two_streams_over_http_are_followed_together() {
    if !has_ffmpeg() {
        return;
    }
    let user = with_detector("--epochs 1");
    let port = serve(http);
    let address = format!("http://127.0.0.1:{port}");
    let running = user.start(&format!("{PREDICT} {address}/a {address}/b --name streams"));
    let said = until_interrupted(&user, running, "streams");
    for stream in ["video 1/2 (2) ", "video 2/2 (2) "] {
        assert!(said.contains(stream), "`{stream}` is not in {said}");
    }
    let films = names(&user.path().join("runs/detect/streams"));
    assert!(films.len() == 2 && films.iter().all(|film| film.ends_with(".mp4")), "{films:?}: {said}");
}
