#!/usr/bin/env python3
"""Tries public failure cases on a real server and prints a Markdown table of what came of them.

usage: cases.py [--big] [--only CASE,KIND...] SERVER CASES

SERVER is the kb binary, CASES the folder with make_cases_open.py, which writes the cases' files. The kinds tried are PDF, MD,
DAT, UPL, JOB and EMB. The server runs on a free port with a data folder of its own and is stopped at the end. After each case
it must be alive, take an upload, find it, have answered no 5xx and have no panic in its log. Memory is that of the server's
process, model included, without PostgreSQL's. Exit status 1: a case fails.
"""
import argparse
import gzip
import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from pathlib import Path

sys.dont_write_bytecode = True  # the folder of the scripts stays as it is
import setup  # noqa: E402

KINDS = ("PDF", "MD", "DAT", "UPL", "JOB", "EMB")
NEEDS = ["reportlab", "pikepdf", "pillow", "tokenizers"]
KEY = "a-key-for-the-cases"
LIMIT = 100 << 20  # KB_MAX_UPLOAD_BYTES by default
FORM = 1 << 20  # what a form may take beside its file
WINDOW = 254  # tokens of a chunk: the model's window without its two special tokens
FINAL = ("done", "failed", "skipped", "cancelled")
EMBED_SECONDS = 150
BOUND = 300e6  # what memory may grow by for a JSON file of up to 50 MB

TEXT_PDF = """
import random, sys
from reportlab.pdfgen import canvas
rng = random.Random(11)
words = ["".join(rng.choices("aeioulnrst", k=rng.randint(2, 9))) for _ in range(4000)]
page = canvas.Canvas(sys.argv[1], invariant=1)
for number in range(300):
    for line in range(48):
        page.drawString(60, 790 - line * 15, f"{number + 1}.{line + 1} " + " ".join(rng.choices(words, k=11)))
    page.showPage()
page.save()
"""
COUNT_TOKENS = """
import json, sys, tokenizers
tokenizer = tokenizers.Tokenizer.from_file(sys.argv[1])
tokenizer.no_truncation()
tokenizer.no_padding()
texts = json.load(sys.stdin)
print(max(len(e.ids) for e in tokenizer.encode_batch(texts, add_special_tokens=False)))
"""


class Failed(Exception):
    """What was seen in place of what is right."""


class NotTried(Exception):
    """Why a case can't be tried here."""


def need(holds, seen):
    if not holds:
        raise Failed(seen)


def megabytes(size):
    return "%d MB" % round(size / 1e6)


WORDS = """about above after again air all along also always and another any are around ask away back because been before
began between big boat book both bring build but call came can carry change city close cold come could country cut day did
different does door down draw each earth east end enough even every example eye face fall family far farm feet few field find
fire first fish five follow food form four friend from garden gave give good great green ground group grow half hand hard head
hear help here high hold home horse house hundred idea into island just keep kind knew know land large last later leave left
letter life light line list little live long look love low made main make many map mark may mean men might mile mind money moon
more morning most mother mountain move much music must name near need never new next night north note nothing notice now number
oil often old once only open order other our out over own page paper part pass path people piece place plain plan plant play
point port power press problem public pull question quick rain reach read red rest right river road rock room round rule run""".split()


def prose(seed, size):
    """Readable filler of about size bytes; equal seeds give equal texts."""
    rng, parts = random.Random(seed), []
    while size > 0:
        parts.append(" ".join(rng.choices(WORDS, k=12)).capitalize() + "." + ("\n\n" if len(parts) % 6 == 5 else ""))
        size -= len(parts[-1]) + 1
    return " ".join(parts)


def together(*calls):
    """Makes calls at the same time and waits for all."""
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Answer:
    """The answer to one request."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    def all(self, name):
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def __str__(self):
        return "%d %s" % (self.status, self.body[:200].decode("utf-8", "replace").strip())


class Server:
    """A kb serve process, what it stands on, and requests to it."""

    def __init__(self, binary, folder):
        self.binary, self.folder, self.data = binary, folder, folder / "data"
        self.log = folder / "server.log"
        self.process, self.port, self.broken, self.uploads = None, 0, [], 0

    def start(self, **variables):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("KB_", "HF_")) or k == "KB_CACHE_DIR"}
        environment.update(HF_HUB_OFFLINE="1", KB_ADDR="127.0.0.1:%d" % self.port, KB_DATA_DIR=str(self.data), KB_API_KEY=KEY, **variables)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen([self.binary, "serve"], env=environment, stdout=log, stderr=log)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                if self.send("GET", "/api/v1/health", watch=False).status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.05)
        raise Failed("the server does not start:\n" + self.log.read_text(errors="replace")[-2000:])

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """Ends the server, and its database where that was left behind."""
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.kill()
        for _ in range(300):
            if not self.postgres():
                return
            os.kill(self.postgres(), signal.SIGINT)
            time.sleep(0.1)

    def restart(self, **variables):
        self.stop()
        self.start(**variables)

    def postgres(self):
        """The process id of the embedded database, 0 when it does not run."""
        try:
            pid = int((self.data / "postgres" / "cluster" / "postmaster.pid").read_text().split("\n")[0])
            os.kill(pid, 0)
            return pid
        except (OSError, ValueError):
            return 0

    def writers(self):
        """The database connections that insert at this moment, by process id."""
        found, parent = set(), self.postgres()
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]) == parent:
                    title = (entry / "cmdline").read_bytes().rstrip(b"\0 ")
                    if title.endswith((b" INSERT", b" COPY")):
                        found.add(int(entry.name))
            except (OSError, ValueError, IndexError):
                continue
        return found

    def cut_connection(self, job):
        """Ends the connection over which a job is being stored, as pg_terminate_backend does. False when the job ended before."""
        before = set()
        while self.job(job)["status"] not in FINAL:
            for _ in range(10):
                now = self.writers()
                if now & before:
                    os.kill((now & before).pop(), signal.SIGTERM)
                    return True
                before = now
                time.sleep(0.03)
        return False

    def status(self, field):
        line = re.search(r"^%s:\s+(\d+)" % field, Path("/proc/%d/status" % self.process.pid).read_text(), re.M)
        return int(line.group(1))

    def memory(self):
        return self.status("VmRSS") * 1024

    def peak(self):
        return self.status("VmHWM") * 1024

    def forget_peak(self):
        Path("/proc/%d/clear_refs" % self.process.pid).write_text("5")

    def send(self, method, path, body=None, headers=None, key=KEY, watch=True):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        try:
            headers = dict(headers or {}, **({"Authorization": "Bearer " + key} if key else {}))
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            answer = Answer(response.status, response.getheaders(), response.read())
        finally:
            connection.close()
        if watch and answer.status >= 500:
            self.broken.append("%s %s: %s" % (method, path, answer))
        return answer

    def get(self, path):
        answer = self.send("GET", path)
        need(answer.status == 200, "GET %s: %s" % (path, answer))
        return answer.json()

    def post(self, path, value, method="POST"):
        return self.send(method, path, json.dumps(value), {"Content-Type": "application/json"})

    def form(self, name=None, content=b"", **fields):
        """Uploads a file, or only fields; gives the answer."""
        parts = [(' name="%s"' % key, value) for key, value in fields.items()]
        if name is not None:
            parts.append((' name="file"; filename="%s"' % name, content))
        border, body = b"border-of-the-cases", b""
        for head, value in parts:
            value = value.encode() if isinstance(value, str) else value
            body += b"--" + border + b"\r\nContent-Disposition: form-data;" + head.encode() + b"\r\n\r\n" + value + b"\r\n"
        return self.raw(body + b"--" + border + b"--\r\n", border.decode())

    def raw(self, body, border="case-boundary-7d1"):
        return self.send("POST", "/api/v1/jobs", body, {"Content-Type": "multipart/form-data; boundary=" + border})

    def queue(self, name=None, content=b"", **fields):
        """Uploads what must be taken; gives the job's id."""
        answer = self.form(name, content, **fields)
        need(answer.status == 202, "upload of %s: %s" % (name or "a note", answer))
        return answer.json()["job_id"]

    def job(self, job):
        return self.get("/api/v1/jobs/" + job)

    def wait(self, job, seconds=300):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            state = self.job(job)
            if state["status"] in FINAL:
                return state
            time.sleep(0.05)
        raise Failed("%s is %s after %d s" % (state["filename"], state["status"], seconds))

    def until(self, job, phase, done=0, seconds=300):
        """Waits until a job is in a phase, with some chunks done."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            state = self.job(job)
            progress = state.get("progress") or {}
            if progress.get("phase") == phase and progress["done"] >= done:
                return state
            need(state["status"] not in FINAL, "%s is %s before it came to %s" % (state["filename"], state["status"], phase))
            time.sleep(0.01)
        raise Failed("no phase %s within %d s" % (phase, seconds))

    def store(self, name, content, seconds=300, **fields):
        """Uploads a file that must be stored; gives its document with all chunks."""
        state = self.wait(self.queue(name, content, **fields), seconds)
        need(state["status"] == "done", "%s is %s: %s" % (name, state["status"], state["error"]))
        return self.document(state["document_id"])

    def document(self, document):
        return self.get("/api/v1/documents/" + document)

    def count(self, tag=""):
        return int(self.send("GET", "/api/v1/documents?limit=1&tags=" + tag).all("X-Total-Count")[0])

    def search(self, query, tag=None, **options):
        if tag:
            options["tags"] = [tag]
        answer = self.post("/api/v1/search", dict({"query": query, "explain": True}, **options))
        need(answer.status == 200, "search for %s: %s" % (query, answer))
        return answer.json()["results"]

    def check(self):
        """What holds after every case."""
        need(self.process.poll() is None, "the server has ended with %s" % self.process.poll())
        self.uploads += 1
        word = "checkpoint%dword" % self.uploads
        state = self.wait(self.queue(title="Checkpoint", note="The %s is written down." % word), 60)
        need(state["status"] == "done" and self.search(word)[0]["document_id"] == state["document_id"], "the next upload is not found")
        broken, self.broken = self.broken, []
        need(not broken, "; ".join(broken[:3]))
        need(b"panic" not in self.log.read_bytes(), "a panic is in the log")


class Cases:
    """The cases' files, the server, and one method a case. A method gives what was measured, or raises Failed or NotTried."""

    def __init__(self, server, files, python):
        self.s, self.files, self.python = server, files, python

    def read(self, name):
        return (self.files / name).read_bytes()

    def put(self, name, tag):
        return self.s.store(Path(name).name, self.read(name), tags=tag)

    def ends(self, name, tag, seconds=60):
        """Uploads a file that may be refused by its job; gives the job and the seconds it took."""
        started = time.monotonic()
        return self.s.wait(self.s.queue(Path(name).name, self.read(name), tags=tag), seconds), time.monotonic() - started

    def tokens(self, *documents):
        """The tokens of the longest chunk; it must fit into the model's window."""
        texts = ["\n".join(dict.fromkeys(filter(None, (d["title"], c["section"], c["text"])))) for d in documents for c in d["chunks"]]
        model, = setup.CACHE.glob("models/all-MiniLM-L6-v2/int8/tokenizer.json")
        run = subprocess.run([self.python, "-c", COUNT_TOKENS, model], input=json.dumps(texts), text=True, check=True, capture_output=True)
        longest = int(run.stdout)
        need(longest <= WINDOW, "a chunk of %d tokens" % longest)
        return longest

    def found(self, query, document, tag, lexical=True):
        for hit in self.s.search(query, tag, top=3):
            if hit["document_id"] == document["id"] and (not lexical or hit["explain"]["fts_rank"] is not None):
                return hit
        raise Failed("%s is not found in %s" % (query, document["original_filename"]))

    # ------------------------------------------------------------------ PDF

    def pdf_01(self):
        """a scan without text"""
        state, _ = self.ends("pdf/scanned_image_only.pdf", "pdf-01")
        need(state["error_code"] == "no_text_layer" and self.s.count("pdf-01") == 0, str(state))
        return "failed, `no_text_layer`"

    def pdf_02(self):
        """a permission password only"""
        document = self.put("pdf/owner_password_only.pdf", "pdf-02")
        self.found("Marlow compressor", document, "pdf-02")

    def pdf_03(self):
        """an open password"""
        state, seconds = self.ends("pdf/user_password.pdf", "pdf-03")
        need(state["status"] == "failed" and state["attempts"] == 1 and "password" in state["error"], str(state))
        return "failed in %.1f s, one attempt, `%s`" % (seconds, state["error_code"])

    def pdf_04(self):
        """two columns"""
        for name in ("by_column", "by_row"):
            document = self.put("pdf/two_column_%s.pdf" % name, "pdf-04-" + name)
            text = " ".join(" ".join(c["text"] for c in document["chunks"]).split())
            left = text.find("The Harrow pump must be drained before the first frost because trapped water splits the housing along the lower seam.")
            right = text.find("The Linden valve ships closed and is opened by a quarter turn when the plant is commissioned by the site engineer in person.")
            need(0 <= left < right, "%s reads: %s" % (name, text))
            self.found('"trapped water splits the housing along the lower seam"', document, "pdf-04-" + name)

    def pdf_05(self):
        """broken, looping and exploding files"""
        outcomes = []
        for name in ("xref_prev_loop", "page_tree_loop", "truncated", "zero_pages", "only_header", "flate_bomb"):
            before = self.s.memory()
            self.s.forget_peak()
            answer = self.s.form(name + ".pdf", self.read("pdf/%s.pdf" % name), tags="pdf-05")
            started = time.monotonic()
            if answer.status == 422:
                outcomes.append("%s: refused" % name)
                continue
            need(answer.status == 202, "%s: %s" % (name, answer))
            state, seconds = self.s.wait(answer.json()["job_id"], 60), time.monotonic() - started
            need(state["status"] == "done" or state["error"] and "Success" not in state["error"], str(state))
            need(state["attempts"] == 1, "%s: %d attempts" % (name, state["attempts"]))
            outcomes.append("%s: %s, %.1f s" % (name, state["error_code"] or state["status"], seconds))
            need(self.s.peak() < 1.1e9, "%s takes %s" % (name, megabytes(self.s.peak())))
        outcomes[-1] += ", from %s to a peak of %s" % (megabytes(before), megabytes(self.s.peak()))
        return "; ".join(outcomes)

    def pdf_06(self):
        """hyphens and ligatures"""
        document = self.put("pdf/hyphen_ligature.pdf", "pdf-06")
        for query in ("configuration", "without", "number", "firmware update", "office", "re-entry", "difficult"):
            self.found(query, document, "pdf-06")
        text = " ".join(c["text"] for c in document["chunks"])
        need("re-entry" in text and not re.search("[\x00-\x08\x0b-\x1f\x7f\u00ad\ufffe]", text), repr(text))

    def pdf_07(self):
        """bytes before the header"""
        document = self.put("pdf/leading_junk.pdf", "pdf-07")
        self.found("Marlow compressor", document, "pdf-07")

    def pdf_300(self):
        """(ours) a text PDF of 300 pages, under 20 s and 500 MB"""
        path = self.files / "text-300.pdf"
        subprocess.run([self.python, "-c", TEXT_PDF, path], check=True)
        self.s.restart()
        before = self.s.memory()
        self.s.forget_peak()
        state = self.s.wait(self.s.queue(path.name, path.read_bytes(), tags="pdf-300"), 600)
        need(state["status"] == "done", str(state))
        seconds, peak = state["timings_ms"]["parse"] / 1000, self.s.peak()
        figure = "parse phase (reading and cutting) %.1f s; from %s to a peak of %s; %d chunks, embed phase %.0f s" % (
            seconds, megabytes(before), megabytes(peak), state["chunk_count"], state["timings_ms"]["embed"] / 1000)
        need(seconds < 20 and peak < 500e6, figure)
        return figure

    # ------------------------------------------------------------------ Markdown

    def md_01(self):
        """hash signs in code"""
        document = self.put("md/fences.md", "md-01")
        sections = {c["section"] for c in document["chunks"]}
        need({s.split(" > ")[-1] for s in sections} == {"Backup guide", "Restore"}, str(sections))
        fence = "# install the agent\napt install tollmark\n## second comment, still shell\ntollmark --version"
        need(any(fence in c["text"] for c in document["chunks"]), "the fence is cut")

    def md_02(self):
        """front matter and underlined headings"""
        document = self.put("md/front_matter_setext.md", "md-02")
        sections = [c["section"].split(" > ")[-1] for c in document["chunks"]]
        need(document["title"] == "Kestrel handbook", document["title"])
        need(list(dict.fromkeys(sections)) == ["Kestrel overview", "Escalation", "Some text"], str(sections))
        need(not any("draft: false" in c["text"] for c in document["chunks"]), "the front matter is in the text")

    def md_03(self):
        """Windows line ends and a byte order mark"""
        document = self.put("md/crlf_bom.md", "md-03")
        sections = [c["section"].split(" > ")[-1] for c in document["chunks"]]
        need(list(dict.fromkeys(sections)) == ["Windows notes", "Second part", "Third part"], str(sections))
        need(sections.count("Third part") > 1, "the long section is one chunk")
        need("\ufeff" not in json.dumps(document, ensure_ascii=False), "a byte order mark is kept")

    # ------------------------------------------------------------------ text, data and code

    def dat_01(self):
        """NUL and broken bytes"""
        document = self.put("txt/nul_bytes.txt", "dat-01")
        self.found("bearing noise", document, "dat-01")
        broken = self.put("txt/invalid_utf8.txt", "dat-01")
        need("\0" not in document["chunks"][0]["text"] + broken["chunks"][0]["text"], "a NUL is stored")
        for title in (b"a\0b", b"\xff", b"a%00b", b"%ff"):
            answer = self.s.form(title=title, note="A note whose title is %r." % title)
            need(answer.status in (202, 400), "title %r: %s" % (title, answer))
        for query in ("%00", "%ff"):
            answer = self.s.send("GET", "/api/v1/documents?tags=" + query)
            need(answer.status in (200, 400), "tags=%s: %s" % (query, answer))

    def dat_02(self):
        """UTF-16 exports"""
        for name in ("utf16le_bom", "utf16be_bom"):
            document = self.put("csv/%s.csv" % name, name)
            self.found("größere Dichtung", document, name)
            self.found("E-1234", document, name)

    def dat_03(self):
        """a byte order mark in the first column name"""
        document = self.put("csv/utf8_bom.csv", "dat-03")
        text = " ".join(c["text"] for c in document["chunks"])
        need("\ufeff" not in text and re.search(r"\bpart\b", text), text)

    def dat_04(self):
        """line breaks inside CSV fields"""
        document = self.put("csv/quoted_newlines.csv", "dat-04")
        text = self.found("Bessemer aligner", document, "dat-04")["text"]
        need(all(part in text for part in ("1147", "misfed", "Reseat the roller", "printer 147", "ticket", "description", "owner")), text)
        tickets = sorted(int(n) for c in document["chunks"] for n in re.findall(r"\b1[0-2]\d\d\b", c["text"]))
        need(tickets == list(range(1000, 1300)), "%d tickets, %d different" % (len(tickets), len(set(tickets))))
        return "300 tickets in %d chunks" % len(document["chunks"])

    def dat_05(self):
        """JSON on one line"""
        before = self.s.memory()
        self.s.forget_peak()
        started = time.monotonic()
        document = self.s.store("one_line_8mb.json", self.read("json/one_line_8mb.json"), 1200, tags="dat-05")
        seconds, peak = time.monotonic() - started, self.s.peak()
        self.found("zephyrquartz", document, "dat-05")
        outcomes = ["8 MB: %d chunks of at most %d tokens in %.0f s, from %s to a peak of %s" % (
            len(document["chunks"]), self.tokens(document), seconds, megabytes(before), megabytes(peak))]
        for name in ("deep_nesting", "one_long_string"):
            state, seconds = self.ends("json/%s.json" % name, name, 120)
            need(state["status"] == "done" or state["error"], str(state))
            outcomes.append("%s: %s, %.1f s" % (name, state["error_code"] or state["status"], seconds))
        need(peak - before < BOUND, "; ".join(outcomes))
        return "; ".join(outcomes)

    def dat_05_50(self):
        """(ours) 50 MB of JSON on one line, read and cut within 300 MB"""
        rng = random.Random(5)
        records, size = [], 0
        while size < 50_000_000:
            records.append({"id": len(records), "sku": "S-%06d" % len(records), "note": " ".join(rng.choices(WORDS, k=18))})
            size += len(records[-1]["note"]) + 45
        content = json.dumps({"records": records}, separators=(",", ":")).encode()
        self.s.restart()
        before = self.s.memory()
        self.s.forget_peak()
        job = self.s.queue("one_line_50mb.json", content, tags="dat-05-50")
        started = time.monotonic()
        total = self.s.until(job, "embed")["progress"]["total"]
        seconds, peak = time.monotonic() - started, self.s.peak()
        self.s.until(job, "embed", 1000)
        later = self.s.peak()
        need(self.s.send("POST", "/api/v1/jobs/%s/cancel" % job).status == 200, "the job can't be cancelled")
        figure = "%d MB, %d chunks after %.1f s; from %s to a peak of %s, %s after 1,000 embedded chunks; then cancelled" % (
            len(content) / 1e6, total, seconds, megabytes(before), megabytes(peak), megabytes(later))
        need(max(peak, later) - before < BOUND, figure)
        return figure

    def dat_06(self):
        """code that does not parse"""
        documents = []
        for name, queries in (("syntax_error.py", {"reorder_level": "def reorder_level", "route_to": "def route_to"}),
                              ("huge_class.py", {"method_1199": "def method_1199"}), ("tabs_crlf.go", {"Tamworth": "func Tamworth"})):
            document = self.put("code/" + name, name)
            documents.append(document)
            for query, start in queries.items():
                text = self.found(query, document, name)["text"]
                first = next((line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith(("//", "#"))), "")
                need(start in text and first.startswith(("def ", "func ", "class ", "package ", '"""')), "%s: %s" % (query, text[:200]))
            kept = {line.strip() for c in document["chunks"] for line in c["text"].splitlines()}
            lost = [line for line in self.read("code/" + name).decode().splitlines() if line.strip() and line.strip() not in kept]
            need(not lost, "%s: %d lines are in no chunk, the first is %r" % (name, len(lost), lost[:1]))
        return "longest chunk %d tokens" % self.tokens(*documents)

    # ------------------------------------------------------------------ uploads

    def upload(self, name):
        """Sends a prepared form; gives the answer and, when it was taken, the document."""
        answer = self.s.raw(self.read("upload/%s.multipart" % name))
        if answer.status != 202:
            return answer, None
        state = self.s.wait(answer.json()["job_id"])
        need(state["status"] == "done", str(state))
        return answer, self.s.document(state["document_id"])

    def upl_01(self):
        """file names on the way back"""
        for name, sent in (("unicode_name", "価格 表 – größe.txt"), ("rfc5987_name", "価格.txt"), ("quote_newline_name", 'a"b%0D%0AX-Evil: 1.txt')):
            answer, document = self.upload(name)
            need(document, "%s: %s" % (name, answer))
            need(document["original_filename"] == sent, "%r became %r" % (sent, document["original_filename"]))
            download = self.s.send("GET", "/api/v1/documents/%s/file" % document["id"])
            header, = download.all("Content-Disposition")
            match = re.fullmatch(r"attachment; filename=\"([ -!#-\[\]-~]*)\"; filename\*=UTF-8''([^ ;\"]+)", header)
            need(match and urllib.parse.unquote(match[2]) == sent, header)
            need(not download.all("X-Evil") and b"Redgrave" in download.body, str(download.headers))

    def upl_02(self):
        """path traversal"""
        for name in ("traversal_name", "traversal_backslash", "dot_name"):
            answer, document = self.upload(name)
            need(answer.status == 400 or document and document["original_filename"] == "outside.txt", "%s: %s" % (name, answer))
        ids = set()
        for path in ("/../x.txt", "/etc/../x.txt", "//x.txt", "/./x.txt"):
            ids.add(self.s.store("x.txt", "Sent as %s." % path, path=path)["id"])
        need(len(ids) == 1, "four spellings of a path make %d documents" % len(ids))
        for path in ("/..", "//", "/a/./b.txt", "/etc/passwd"):
            answer = self.s.form("y.txt", "Also sent as %s." % path, path=path)
            need(answer.status in (202, 400), "path %s: %s" % (path, answer))
        names = ("outside.txt", "x.txt", "b.txt", "passwd")
        strangers = [str(p) for p in self.s.folder.rglob("*") if self.s.data not in p.parents and p.name in names]
        need(not strangers, str(strangers))

    def expect(self, length):
        """Announces a body of some length; gives the first line of the answer and whether it came without the body."""
        head = ("POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: multipart/form-data; boundary=b\r\n"
                "Content-Length: %d\r\nExpect: 100-continue\r\n\r\n" % (KEY, length))
        with socket.create_connection(("127.0.0.1", self.s.port), 10) as connection:
            connection.sendall(head.encode())
            return connection.recv(200).split(b"\r\n")[0].decode()

    def upl_03(self):
        """too large"""
        staged = lambda: {str(p) for p in self.s.data.rglob("*") if "staging" in p.parts and p.is_file()}
        before, memory = staged(), self.s.memory()
        self.s.forget_peak()
        answer = self.s.form("over.txt", b"a " * (LIMIT // 2) + b"b")
        need(answer.status == 413 and str(LIMIT) in answer.json()["message"], str(answer))
        over = self.s.peak()
        need(staged() == before, "a staged file stays")
        first = self.expect(LIMIT + FORM + 1)
        need(" 413 " in first, "with Expect: %s" % first)
        started = time.monotonic()
        self.s.store("exact.txt", b"The Oxhey boiler takes exactly the limit.".ljust(LIMIT, b"\n"), 600, tags="upl-03")
        return ("413 names the limit, from %s to a peak of %s; exactly the limit is done in %.1f s; "
                "with Expect, a body above limit and form is refused unsent" % (megabytes(memory), megabytes(over), time.monotonic() - started))

    def upl_04(self):
        """compressed request bodies"""
        bomb = self.read("upload/bomb_200mb.json.gz")
        headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        before, answers = self.s.memory(), []
        self.s.forget_peak()
        started = time.monotonic()
        for key in (KEY, None):
            send = lambda: answers.append((key, self.s.send("POST", "/api/v1/search", bomb, headers, key).status))
            together(*[send] * 5)
        seconds, growth = time.monotonic() - started, self.s.peak() - before
        need(len(answers) == 10 and all(status in ((413, 415, 400) if key else (401,)) for key, status in answers), str(answers))
        need(growth < 50e6, "memory grows by " + megabytes(growth))
        small = self.s.send("POST", "/api/v1/search", gzip.compress(b'{"query":"kiln"}'), headers)
        need(small.status in (200, 415), str(small))
        answer = self.s.form("one_line_8mb.json.gz", gzip.compress(self.read("json/one_line_8mb.json")))
        need(answer.status == 422 and answer.json()["supported"], str(answer))
        return "%d, without a key 401; ten in %.2f s, growth %s; small gzip %d; `.gz` 422" % (answers[0][1], seconds, megabytes(growth), small.status)

    def upl_05(self):
        """nothing in it"""
        before, outcomes = self.s.count(), []
        answers = [("empty", self.s.form("empty.txt", b"")), ("blank", self.s.form("blank.txt", self.read("txt/whitespace.txt"))),
                   ("blank note", self.s.form(title="Blank", note=" \t\n"))]
        answers += [(name.replace("_", " "), self.s.raw(self.read("upload/%s.multipart" % name))) for name in ("no_filename", "empty_filename")]
        for name, answer in answers:
            need(answer.status in (202, 400, 422), "%s: %s" % (name, answer))
            state = self.s.wait(answer.json()["job_id"]) if answer.status == 202 else None
            need(not state or state["status"] == "failed" and state["error"], "%s: %s" % (name, state))
            outcomes.append("%s: %s" % (name, "job failed, `%s`" % state["error_code"] if state else answer.status))
        need(self.s.count() == before, "the list grows")
        return "; ".join(outcomes)

    def upl_06(self):
        """same bytes, other name"""
        first, document = self.upload("same_bytes_1")
        second, _ = self.upload("same_bytes_2")
        third, other = self.upload("other_bytes_same_name")
        need((first.status, second.status, third.status) == (202, 409, 202), "%s, %s, %s" % (first, second, third))
        need(second.json()["document_id"] == document["id"], str(second))
        before, answers = self.s.count(), []
        send = lambda: answers.append(self.s.form("twin.txt", b"Two equal uploads at the same instant.\n"))
        together(send, send)
        ends = sorted(self.s.wait(a.json()["job_id"])["status"] if a.status == 202 else str(a.status) for a in answers)
        need(self.s.count() == before + 1, "%s, %d documents" % (ends, self.s.count() - before))
        return "202, 409, 202 with %s id; the two at once: %s, one document" % ("the first's" if other["id"] == document["id"] else "a new", " and ".join(ends))

    # ------------------------------------------------------------------ jobs

    def whole(self, document):
        """A document whose chunks are there once each, in order."""
        need([c["seq"] for c in document["chunks"]] == list(range(document["chunk_count"])), "chunks are missing or there twice")
        return document["chunk_count"]

    def job_01(self):
        """killed in the middle"""
        content = self.read("txt/distinct_words.txt")[:500_000]  # a quarter: a file is worked on three times
        plain = self.s.store("distinct_words.txt", content, 600, tags="job-01")
        self.s.send("DELETE", "/api/v1/documents/" + plain["id"])
        job, waits = self.s.queue("distinct_words.txt", content, tags="job-01"), []
        for turn in (1, 2):
            self.s.until(job, "embed", 100)
            self.s.kill()
            started = time.monotonic()
            self.s.start()
            while self.s.job(job)["attempts"] == turn:
                need(time.monotonic() - started < 180, "not taken up again after 180 s")
                time.sleep(0.1)
            waits.append(time.monotonic() - started)
        state = self.s.wait(job, 600)
        need(state["status"] == "done" and state["attempts"] == 3, str(state))
        chunks = self.whole(self.s.document(state["document_id"]))
        need(chunks == plain["chunk_count"], "%d chunks, undisturbed %d" % (chunks, plain["chunk_count"]))
        return "500 kB, killed twice, taken up again %.0f s and %.0f s after the kill, done at attempt 3 with the same %d chunks" % (
            *waits, chunks)

    def job_02(self):
        """retries write twice"""
        job = self.s.queue("retry.txt", prose(2, 400_000), tags="job-02")
        need(self.s.cut_connection(job), "the job ended before its connection could be cut")
        need(self.s.count("job-02") == 0, "half a document is visible")
        state = self.s.wait(job)
        need(state["status"] == "done" and state["attempts"] == 2, str(state))
        chunks = self.whole(self.s.document(state["document_id"]))
        hits = [hit["chunk_id"] for hit in self.s.search(prose(2, 100), "job-02", top=100)]
        need(len(hits) == len(set(hits)), "a result is there twice")
        return "connection ended while storing; done at attempt 2, %d chunks once each" % chunks

    def job_03(self):
        """a failed update destroys the good version"""
        old = self.s.store("v.txt", "The old version speaks of Ambleforth. " + prose(3, 20_000), path="/job-03/v.txt", tags="job-03")
        job = self.s.queue("v.txt", "The new version speaks of Zennorquay. " + prose(4, 500_000), path="/job-03/v.txt", tags="job-03")
        cuts = 0
        while self.s.cut_connection(job):
            cuts += 1
            need(cuts <= 3, "a fourth attempt")
            self.found("Ambleforth", old, "job-03")
            need(not self.s.search("Zennorquay", "job-03", fts_only=True), "the half version is found")
            while self.s.job(job)["attempts"] == cuts and self.s.job(job)["status"] not in FINAL:
                time.sleep(0.1)
        state, now = self.s.wait(job), self.s.document(old["id"])
        need(state["status"] == "failed" and state["error"] and cuts == 3, str(state))
        need(now["chunks"] == old["chunks"] and now["version"] == old["version"], "the old version has changed")
        return "500 kB, connection ended in each of three attempts; job failed, `%s`; the old version is complete" % state["error_code"]

    def job_04(self):
        """an older version wins"""
        note = self.s.store(None, b"", title="Rota", note="The first rota.", tags="job-04")
        answers, conflicts = [], 0
        for turn in range(20):
            long = "Longversion%d. %s" % (turn, prose(100 + turn, 500_000 if turn == 0 else 50_000))
            thread = threading.Thread(target=lambda: answers.append(self.s.post("/api/v1/notes/" + note["id"], {"text": long}, "PATCH").status))
            thread.start()
            time.sleep(0.3)
            last = "Shortversion%d is the last." % turn
            answer = self.s.post("/api/v1/notes/" + note["id"], {"text": last}, "PATCH")
            thread.join()
            if answer.status == 409:  # it met the other one's commit, and its caller knows
                conflicts += 1
                answer = self.s.post("/api/v1/notes/" + note["id"], {"text": last}, "PATCH")
            need(answer.status == 200, str(answer))
            self.latest(note, last, turn)
        for turn in range(20, 25):
            self.s.queue("rota.txt", "Longversion%d. %s" % (turn, prose(100 + turn, 50_000)), path="/job-04/rota.txt", tags="job-04")
            last = "Shortversion%d is the last." % turn
            self.latest(self.s.store("rota.txt", last, path="/job-04/rota.txt", tags="job-04"), last, turn)
        older = ", ".join("%d × %d" % (answers.count(status), status) for status in sorted(set(answers)))
        return ("20 rounds of PATCH (the first of 500 kB, then 50 kB; the older one answered %s, the last one %d × 409 at first) "
                "and 5 of uploads under one path: the last request stands" % (older, conflicts))

    def latest(self, document, text, turn):
        """Text, words and vector are those of the last request."""
        now = self.s.document(document["id"])
        need([c["text"].strip() for c in now["chunks"]] == [text], "round %d: %s" % (turn, [c["text"][:40] for c in now["chunks"]][:3]))
        need(not self.s.search("Longversion%d" % turn, "job-04", fts_only=True), "round %d: words of the older text are found" % turn)
        scores = [h["similarity_score"] for h in self.s.search(text, "job-04", vec_only=True) if h["document_id"] == document["id"]]
        need(len(scores) == 1 and scores[0] > 0.6, "round %d: similarity %s" % (turn, scores))

    def job_05(self):
        """poison jobs"""
        locked = self.read("pdf/user_password.pdf")
        started = time.monotonic()
        poison = [self.s.queue("locked%d.pdf" % i, locked + b"%%%d\n" % i) for i in range(20)]
        note = self.s.queue(title="Good", note="The good note behind twenty locked files.")
        good = self.s.wait(note, 60)
        seconds, states = time.monotonic() - started, [self.s.wait(job) for job in poison]
        need(good["status"] == "done" and all(s["status"] == "failed" and s["attempts"] == 1 for s in states), str(states[0]))
        retry = self.s.send("POST", "/api/v1/jobs/%s/retry" % poison[0])
        need(retry.status == 200, str(retry))
        again = self.s.wait(poison[0])
        need(again["status"] == "failed" and again["completed_at"] > states[0]["completed_at"], str(again))
        refused = self.s.send("POST", "/api/v1/jobs/%s/retry" % note)
        need(refused.status == 409, str(refused))
        return "note done %.1f s after the first upload; retry runs again; on a done job 409" % seconds

    def job_06(self):
        """behind a transaction pooler"""
        raise NotTried("needs PgBouncer before an external PostgreSQL")

    def job_07(self):
        """a noisy neighbour"""
        raise NotTried("needs two tenants; the server has one project today")

    # ------------------------------------------------------------------ embedding

    def emb_01(self):
        """the tail of a chunk is never embedded"""
        document = self.put("txt/long_tail_fact.txt", "emb-01")
        hits = [h for h in self.s.search("what is the club's mascot named?", "emb-01", top=3) if "Bartholomew" in h["text"] and h["explain"]["vec_rank"]]
        need(hits, "the fact at the end is not among the first three")
        return "%d chunks, the longest of %d tokens" % (len(document["chunks"]), self.tokens(document))

    def emb_02(self):
        """padding leaks into the vector"""
        fact, rest = "# Times\n\nThe kiln is lit on Fridays.\n", "".join("\n# Part %d\n\n%s\n" % (i, prose(20 + i, 1300)) for i in range(3))
        scores = []
        for tag, text in (("emb-02-alone", fact), ("emb-02-together", fact + rest)):
            self.s.store("kiln.md", text, title="Kiln", tags=tag)
            scores += [h["similarity_score"] for h in self.s.search("when is the kiln lit", tag) if "lit on Fridays" in h["text"]]
        need(len(scores) == 2 and abs(scores[0] - scores[1]) < 1e-4, str(scores))
        return "difference %.1e, in int8" % abs(scores[0] - scores[1])

    def emb_03(self):
        """threads for the whole host"""
        def times(count, requests):
            taken = []

            def run():
                for _ in range(requests):
                    started = time.monotonic()
                    self.s.search("oil of the pump %s" % random.random())
                    taken.append(time.monotonic() - started)
            together(*[run] * count)
            return statistics.quantiles(taken, n=20)[18] * 1000
        idle = times(1, 60)
        job = self.s.queue("busy.txt", prose(8, 1_000_000))
        self.s.until(job, "embed", 1)
        busy, threads = times(8, 30), self.s.status("Threads")
        self.s.send("POST", "/api/v1/jobs/%s/cancel" % job)
        self.s.wait(job)
        raise NotTried("needs a container with a CPU quota; on this machine's %d CPUs %d threads, p95 of a search %.0f ms idle, "
                       "%.0f ms with 8 at once during an ingestion" % (os.cpu_count(), threads, idle, busy))

    def emb_04(self):
        """memory grows with every new shape"""
        self.s.restart(KB_QUERY_CACHE_BYTES="0")
        texts = [w for t in json.loads(self.read("corpus/shape_mix.json"))["texts"] for w in t.split()]
        rng, samples, count, started = random.Random(4), [], 0, time.monotonic()
        while time.monotonic() - started < EMBED_SECONDS:
            self.s.search(" ".join(rng.choices(texts, k=rng.randint(3, 250))), top=1)
            if count % 20 == 0:
                self.s.queue(title="Shapes", note="\n\n".join(" ".join(rng.choices(texts, k=rng.randint(3, 250))) for _ in range(rng.randint(1, 12))))
            if count % 10 == 0:
                samples.append(self.s.memory())
            count += 1
        third = len(samples) // 3
        middle, last = (statistics.median(samples[i:i + third]) for i in (third, 2 * third))
        figure = "%d queries and %d notes in %d s (not 30 min), query cache off: median %s in the second third, %s in the last" % (
            count, (count + 19) // 20, EMBED_SECONDS, megabytes(middle), megabytes(last))
        need(last < middle * 1.1, figure)
        return figure

    def emb_05(self):
        """empty input to the model"""
        before = self.s.count()
        for body in ({"query": ""}, {"query": "", "tags": ["emb-01"]}):
            need(self.s.post("/api/v1/search", body).status == 400, "%s is not refused" % body)
        need(self.s.form(title="Empty", note="").status == 400, "an empty note is not refused")
        document = self.s.store("guide.md", "# Guide\n\n## Nothing here\n\n## Care\n\nOil the Brannock hinge.\n\n## Last\n", tags="emb-05")
        self.found("Brannock hinge", document, "emb-05")
        need(all(c["text"].strip() for c in document["chunks"]), "an empty chunk")
        state, _ = self.ends("txt/punctuation.txt", "emb-05")
        stored = state["status"] == "done" and state["chunk_count"] > 0
        need(stored or state["error_code"] == "empty", str(state))
        need(self.s.count() == before + 1 + stored, "a document without chunks")
        return "only punctuation: %s" % (state["error_code"] or state["status"])


def prepare(cases, folder, big):
    """Makes the generator's environment in the cache folder, and the files; gives the environment's Python."""
    python = setup.CACHE / "cases" / "bin" / "python"
    probe = [python, "-c", "import reportlab, pikepdf, PIL, tokenizers"]
    if not python.exists() or subprocess.run(probe, capture_output=True).returncode != 0:
        subprocess.run([sys.executable, "-m", "venv", "--clear", python.parent.parent], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *NEEDS], check=True)
    subprocess.run([python, "make_cases_open.py", folder, *(["--big"] if big else [])], cwd=cases, check=True, stdout=sys.stderr,
                   env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1"))
    return python


def attempt(server, method):
    """Tries one case; gives outcome and figure."""
    outcome, figure = "holds", ""
    try:
        figure = method() or ""
    except NotTried as reason:
        outcome, figure = "not tried", str(reason)
    except Exception as error:  # one case must not keep the others from being tried
        outcome, figure = "**fails**", str(error) if isinstance(error, Failed) else "%s: %s" % (type(error).__name__, error)
    try:
        if server.process.poll() is not None:
            server.start()
            raise Failed("the server had ended")
        server.check()
    except (Failed, OSError) as error:
        outcome, figure = "**fails**", "%s; afterwards: %s" % (figure, error)
    return outcome, figure


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--big", action="store_true")
    parser.add_argument("--only", default=",".join(KINDS))
    parser.add_argument("server")
    parser.add_argument("cases")
    options = parser.parse_args()
    if not (Path(options.cases) / "make_cases_open.py").is_file():
        sys.exit("cases: set CASES to the folder that holds make_cases_open.py, as in make cases CASES=DIR.")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("cases: stopped"))
    wanted, failures = tuple(options.only.replace("-", "_").lower().split(",")), 0
    with tempfile.TemporaryDirectory(prefix="kb-cases-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        python = prepare(options.cases, folder / "files", options.big)
        # A copy, so that a build meanwhile changes nothing.
        server = Server(shutil.copy2(options.server, folder / "kb"), folder)
        try:
            server.start()
            cases = Cases(server, folder / "files", python)
            print("| case | outcome | figure | time |\n| --- | --- | --- | --- |", flush=True)
            for method in [m for m in vars(Cases) if re.match(r"[a-z]{2,3}_\d", m) and m.startswith(wanted)]:
                started = time.monotonic()
                outcome, figure = attempt(server, getattr(cases, method))
                failures += "fails" in outcome
                print("| %s %s | %s | %s | %.1f s |" % (method.upper().replace("_", "-"), getattr(cases, method).__doc__, outcome,
                                                      " ".join(figure.replace("|", "\\|").split()), time.monotonic() - started), flush=True)
        finally:
            server.stop()
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
