"""Writes embed/onnx/testdata/parity.json: texts with the token ids and vectors that Python makes of them.

Go's tokenizer and model are compared with it. It needs PyPI's onnxruntime, tokenizers and numpy:

    python embed_vectors.py MODEL_DIR OUTPUT

MODEL_DIR holds model.onnx and tokenizer.json of all-MiniLM-L6-v2 in int8.
"""

import base64
import json
import pathlib
import sys

import numpy
import onnxruntime
import tokenizers

WINDOW = 256

TEXTS = {
    "english": "How do I reset the pressure sensor after error E-4711?",
    "english upper": "PLEASE READ THE MANUAL BEFORE USING THE DEVICE.",
    "one letter": "a",
    "number": "3.14159 and 1,000,000",
    "french NFC": "Où est l’hôtel ? Ça coûte très cher, déjà vu à Noël.",
    "french NFD": "Ou\u0300 est l’ho\u0302tel ? C\u0327a cou\u0302te tre\u0300s cher, de\u0301ja\u0300 vu a\u0300 Noe\u0308l.",
    "german": "Die Größe der Straße übersteigt 25 Meilen; Ärger mit ß und ẞ.",
    "spanish": "¿Dónde está el baño? ¡Mañana será otro día!",
    "portuguese": "A informação não está disponível em São Paulo.",
    "polish": "Zażółć gęślą jaźń: łódź, świętość, żółw.",
    "czech": "Příliš žluťoučký kůň úpěl ďábelské ódy.",
    "turkish": "İstanbul'da ılık bir gün, IĞDIR ve DİYARBAKIR.",
    "vietnamese": "Tiếng Việt có nhiều dấu thanh: ngã, hỏi, nặng, sắc, huyền.",
    "vietnamese NFD": "Tie\u0302\u0301ng Vie\u0323\u0302t co\u0301 nhie\u0302\u0300u da\u0302\u0301u thanh.",
    "russian": "Съешь же ещё этих мягких французских булок, да выпей чаю.",
    "ukrainian": "Їжак їсть ґрунтовно, а п'ять кішок сплять.",
    "greek": "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία: ΟΔΟΣ, οδός.",
    "georgian": "საქართველოს დედაქალაქი თბილისია.",
    "armenian": "Բարեւ, աշխարհ։",
    "chinese": "如何在知识库中搜索文档?请检查传感器的压力读数。",
    "chinese mixed": "用Python3编写的API返回JSON格式,错误码500。",
    "chinese traditional": "請問圖書館在哪裡?謝謝您的幫助!",
    "chinese rare": "\U00020000\U0002a6d6 㐀䶵 豈\uf900 \U0002f800",
    "japanese": "東京タワーの高さは333メートルです。カタカナとひらがな。",
    "japanese halfwidth": "ﾊﾝｶｸ ｶﾀｶﾅ とｶﾞﾝﾀﾞﾑ",
    "korean": "안녕하세요, 세계! 데이터베이스를 검색합니다.",
    "korean jamo": "\u1112\u1161\u11ab\u1100\u1173\u11af",
    "arabic": "مرحبا بالعالم، كيف حالك اليوم؟",
    "arabic vowels": "بِسْمِ ٱللَّهِ ٱلرَّحْمَٰنِ ٱلرَّحِيمِ",
    "hebrew": "שלום עולם, מה שלומך? שָׁלוֹם",
    "hindi": "नमस्ते दुनिया, यह एक परीक्षण वाक्य है।",
    "bengali": "বাংলা ভাষা খুব সুন্দর।",
    "tamil": "தமிழ் ஒரு பழமையான மொழி.",
    "thai": "สวัสดีชาวโลก ภาษาไทยไม่มีการเว้นวรรค",
    "emoji": "Great job 👍🏽🎉 see you ☕️",
    "emoji zwj": "Family 👨‍👩‍👧‍👦 and flags 🇫🇷🇯🇵 and 🏳️‍🌈",
    "maths": "∀x ∈ ℝ: ∑ᵢ xᵢ² ≤ ‖x‖² ⇒ √2 ≈ 1.414, α + β ≠ γ",
    "currency": "Costs $5, €4.50, £3 or ¥700 + 10% = ~12 ^ 2 | <tag>",
    "control": "be\u0007ll and\u0000 null \u0085 next \u000b vertical \u000c form \u007f delete",
    "zero width": "zero\u200bwidth joi\u200dner non\u200cjoiner \ufeffbom word\u2060joiner soft\u00adhyphen",
    "direction marks": "left\u200e right\u200f \u202aembedded\u202c \u2066isolated\u2069",
    "spaces": "no\u00a0break en\u2002em\u2003thin\u2009hair\u200aideographic\u3000line\u2028para\u2029ogham\u1680tab\tnewline\nreturn\r\nend",
    "replacement": "broken \ufffd bytes \ufffd\ufffd",
    "private use": "icon \ue000 and \U000f0000 end",
    "ligatures": "ﬁne eﬀect ﬂow Ǆ ǅ ĳ № ™ ℃ ½",
    "fullwidth": "ＦＵＬＬ　ｗｉｄｔｈ　１２３！",
    "punctuation": "...!?;:--—–“”‘’«»„()[]{}<>/\\|@#$%^&*_+=~`",
    "one mark": "!",
    "code": "func (s *Server) documentGet(ctx context.Context, id uuid.UUID) (*Document, error) {\n\treturn nil, fmt.Errorf(\"get %s: %w\", id, err)\n}",
    "identifiers": "snake_case_name camelCaseName kebab-case-name SCREAMING_CASE foo.bar.baz a/b/c",
    "sql": "SELECT id, 1 - (embedding <=> $1) AS score FROM chunks WHERE project_id = $2 ORDER BY 2 DESC LIMIT 10;",
    "json": '{"name": "kb", "tags": ["a", "b"], "size": 1.5e-3, "ok": true, "none": null}',
    "url": "https://example.org/path/to?query=1&other=%C3%A9#fragment mail me@example.org",
    "hash": "da39a3ee5e6b4b0d3255bfef95601890afd80709 550e8400-e29b-41d4-a716-446655440000",
    "word of 100": "x" * 100,
    "word of 101": "y" * 101 + " and more",
    "lone accents": "\u0301 \u0308a\u0308\u0308 \u0327",
    "old scripts": "𐎠𐎡𐎢 𐤀𐤁𐤂 ᚠᚢᚦ",
    "long": " ".join(f"Sentence {i} of a long passage says that part {i * 37} needs oil." for i in range(60)),
    "long chinese": "知识库搜索引擎的测试文本。" * 60,
    "exactly full": "word " * 254,
    "one too many": "word " * 255,
}


def main(model_dir: str, output: str) -> None:
    folder = pathlib.Path(model_dir)
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(WINDOW)
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    lines = []
    for name, text in TEXTS.items():
        ids = tokenizer.encode(text).ids
        feed = {
            "input_ids": numpy.array([ids], numpy.int64),
            "attention_mask": numpy.ones((1, len(ids)), numpy.int64),
            "token_type_ids": numpy.zeros((1, len(ids)), numpy.int64),
        }
        tokens = session.run(None, feed)[0][0]
        vector = tokens.astype(numpy.float64).mean(axis=0)
        vector /= numpy.linalg.norm(vector)
        packed = base64.b64encode(vector.astype("<f4").tobytes()).decode()
        lines.append(json.dumps({"name": name, "text": text, "ids": ids, "vector": packed}))
    pathlib.Path(output).write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
