package code

// samples are sources with what they are cut into: path and first line of each block.
var samples = []struct {
	name, extension, text string
	want                  []string
}{
	{"GoTypesAndMethods", ".go", `// Package store stores.
package store

import "fmt"

const (
	a = 1
)

// Queue queues.
type Queue[T any] struct{ x T }

type (
	// A is.
	A int
	B struct{}
)

// Push pushes.
func (q *Queue[T]) Push(x T) {
	fmt.Println(x)
}
func New() {}
`, []string{
		"store | // Package store stores.",
		"store > Queue | // Queue queues.",
		"store > A | type (",
		"store > B | B struct{}",
		"store > Queue > Push | // Push pushes.",
		"store > New | func New() {}",
	}},
	{"PythonClassesAndConditions", ".py", `#!/usr/bin/env python
import os
from x import y

# The limit.
LIMIT = 3


# Retries.
@retry(
    times=3,
)
@cached
async def fetch(url):
    def inner():
        return 1

    return inner()


if os.name == "nt":
    def sep():
        return "\\"
else:
    def sep():
        return "/"


class Small(Exception):
    """Small."""

    def m(self): ...


def typed[T](x: T) -> T:  # a comment
    return x
# About main.
if __name__ == "__main__":
    fetch(1)
`, []string{
		" | #!/usr/bin/env python",
		"fetch | # Retries.",
		` | if os.name == "nt":`,
		"sep | def sep():",
		" | else:",
		"sep | def sep():",
		"Small | class Small(Exception):",
		"typed | def typed[T](x: T) -> T:  # a comment",
		" | # About main.",
	}},
	{"TypeScriptNamespaceDecoratorArrow", ".ts", `import { x } from "y";

namespace Store {
  export interface Item { id: number }
  /** Doc */
  export function make(): Item { return { id: 1 } }
}

@Injectable()
export class Queue<T> {
  private items: T[] = [];
  push(x: T): void { this.items.push(x) }
}
export const add = (a: number, b: number): number => a + b;
export type Id = string;
export enum Color { Red }
export default function () { return 1 }
declare module "foo" { export function bar(): void }
const a = 1;
`, []string{
		` | import { x } from "y";`,
		"Store > Item | export interface Item { id: number }",
		"Store > make | /** Doc */",
		"Queue | @Injectable()",
		"add | export const add = (a: number, b: number): number => a + b;",
		"Id | export type Id = string;",
		"Color | export enum Color { Red }",
		"default | export default function () { return 1 }",
		`foo > bar | declare module "foo" { export function bar(): void }`,
		" | const a = 1;",
	}},
	{"TSXComponent", ".tsx", `import React from "react";

// Shows a name.
export const Name: React.FC<Props> = ({ name }) => {
  return <b>{name}</b>;
};

export default class App extends React.Component {
  render() {
    return <Name name="x" />;
  }
}
const handler = async function () { return 1; };
export { handler };
`, []string{
		` | import React from "react";`,
		"Name | // Shows a name.",
		"App | export default class App extends React.Component {",
		"handler | const handler = async function () { return 1; };",
		" | export { handler };",
	}},
	{"JavaScriptAssignments", ".js", `"use strict";
const x = require("x");
exports.foo = function () { return 1; };
Queue.prototype.push = function (x) {
  return x;
};
const C = class { m() {} };
function* gen() { yield 1 }
`, []string{
		` | "use strict";`,
		"foo | exports.foo = function () { return 1; };",
		"Queue > push | Queue.prototype.push = function (x) {",
		"C | const C = class { m() {} };",
		"gen | function* gen() { yield 1 }",
	}},
	{"TemplatesInNamespace", ".cpp", `#ifndef X_H
#define X_H
#include <vector>

namespace acme::store {

// A queue.
template <typename T>
class Queue {
 public:
  void push(T x);
  int size() const { return 1; }
};

template <typename T>
void Queue<T>::push(T x) {
  (void)x;
}

int* Store::Foo::get(int a) { return nullptr; }
enum class Color { Red };
bool operator==(const A& a, const A& b) { return true; }

}  // namespace acme::store
extern "C" {
int c_fn(void) { return 1; }
}
#endif  // X_H
`, []string{
		" | #ifndef X_H",
		"acme::store > Queue | // A queue.",
		"acme::store > Queue > push | template <typename T>",
		"acme::store > Store > Foo > get | int* Store::Foo::get(int a) { return nullptr; }",
		"acme::store > Color | enum class Color { Red };",
		"acme::store > operator== | bool operator==(const A& a, const A& b) { return true; }",
		` | extern "C" {`,
		"c_fn | int c_fn(void) { return 1; }",
	}},
	{"CTypesMacrosFunctions", ".c", `#include <stdio.h>
struct node { int x; };
typedef struct { int y; } point_t;
enum color { RED };
static int x = 1;

/* Adds. */
static int add(int a, int b)
{
    return a + b;
}
#define MAX(a, b) \
    ((a) > (b) ? (a) : (b))
int main(void) { return 0; }
`, []string{
		" | #include <stdio.h>",
		"node | struct node { int x; };",
		"point_t | typedef struct { int y; } point_t;",
		"color | enum color { RED };",
		" | static int x = 1;",
		"add | /* Adds. */",
		`MAX | #define MAX(a, b) \`,
		"main | int main(void) { return 0; }",
	}},
	{"RustModuleImplTrait", ".rs", `use std::fmt;
mod store {
    /// A queue.
    #[derive(Debug)]
    pub struct Queue<T> { items: Vec<T> }

    impl<T> Queue<T> {
        pub fn push(&mut self, x: T) { self.items.push(x) }
    }
    impl fmt::Display for Queue<i32> {
        fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result { Ok(()) }
    }
}
trait Shape { fn area(&self) -> f64; }
macro_rules! sq { ($x:expr) => { $x * $x }; }
`, []string{
		" | use std::fmt;",
		"store > Queue | /// A queue.",
		"store > Queue | impl<T> Queue<T> {",
		"store > Queue | impl fmt::Display for Queue<i32> {",
		"Shape | trait Shape { fn area(&self) -> f64; }",
		"sq | macro_rules! sq { ($x:expr) => { $x * $x }; }",
	}},
	{"RubyModuleClass", ".rb", `require "set"
module Acme
  # A queue.
  class Queue < Base
    attr_reader :x
    def push(x)
      @x = x
    end
    def self.make; new; end
  end
end
def helper
  1
end
`, []string{
		` | require "set"`,
		"Acme > Queue | class Queue < Base",
		"helper | def helper",
	}},
	{"ShellFunctions", ".sh", `#!/bin/bash
set -e
# Builds.
build() {
  make
}
function deploy {
  echo x
}
build
`, []string{
		" | #!/bin/bash",
		"build | # Builds.",
		"deploy | function deploy {",
		" | build",
	}},
	{"JavaAnnotatedClass", ".java", `package com.acme.store;

import java.util.List;

/** Q. */
@Deprecated
public class Queue<T> {
    private int x;
    @Override
    public String toString() { return ""; }
}
record Point(int x, int y) {}
enum Color { RED; void f() {} }
`, []string{
		"com.acme.store | package com.acme.store;",
		"com.acme.store > Queue | /** Q. */",
		"com.acme.store > Point | record Point(int x, int y) {}",
		"com.acme.store > Color | enum Color { RED; void f() {} }",
	}},
	{"CSharpFileNamespace", ".cs", `using System;
namespace Acme.Store;

/// <summary>Q</summary>
public class Queue {
    public int Size { get; set; }
    [Obsolete]
    public void Push(int x) {
        Console.WriteLine(x);
    }
}
public enum Color { Red, Green }
`, []string{
		"Acme.Store | using System;",
		"Acme.Store > Queue | /// <summary>Q</summary>",
		"Acme.Store > Color | public enum Color { Red, Green }",
	}},
	{"CSharpNestedNamespaces", ".cs", `namespace Acme {
  namespace Inner {
    public interface IFoo { void A(); }
    public record Point(int X, int Y);
    public struct S { public static S operator +(S a, S b) => a; }
  }
}
`, []string{
		"Acme | namespace Acme {",
		"Acme > Inner > IFoo | public interface IFoo { void A(); }",
		"Acme > Inner > Point | public record Point(int X, int Y);",
		"Acme > Inner > S | public struct S { public static S operator +(S a, S b) => a; }",
	}},
	{"PHPNamespace", ".php", `<?php
namespace App\Models;

use Foo\Bar;

#[Attr]
class User extends Model
{
    private $x = 1;

    /** Doc. */
    public function name(): string
    {
        return "x";
    }
}

function helper($a) {
    return $a;
}
`, []string{
		`App\Models | <?php`,
		`App\Models > User | #[Attr]`,
		`App\Models > helper | function helper($a) {`,
	}},
	{"SQLStatements", ".sql", `-- Users.
CREATE TABLE app.users (
    id bigint PRIMARY KEY,
    name text NOT NULL
);

CREATE INDEX users_name ON app.users (name);

INSERT INTO app.users VALUES (1, 'a');
INSERT INTO app.users VALUES (2, 'b');

CREATE OR REPLACE FUNCTION add(a int, b int) RETURNS int AS $$
BEGIN
    RETURN a + b;
END;
$$ LANGUAGE plpgsql;

CREATE VIEW v AS SELECT * FROM app.users;
`, []string{
		"app.users | -- Users.",
		"users_name | CREATE INDEX users_name ON app.users (name);",
		" | INSERT INTO app.users VALUES (1, 'a');",
		"add | CREATE OR REPLACE FUNCTION add(a int, b int) RETURNS int AS $$",
		"v | CREATE VIEW v AS SELECT * FROM app.users;",
	}},
}
