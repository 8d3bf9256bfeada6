#!/usr/bin/env node
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename } from 'node:path'
import { cachedDataVersionTag } from 'node:v8'
import { Script } from 'node:vm'

/** A bundled program: a CommonJS module, as a function. */
type Program = (require: NodeJS.Require, filename: string, dirname: string) => void

// Runs the bundled program with the name of this file. Parsing the command line would take a third of its start, so V8's code
// cache is saved when a program is bundled (`bundle.mjs`): the same V8 on the same kind of machine uses it, any other parses. V8
// itself checks only the length of the program, and would crash on a damaged cache: so the cache begins with a hash of both.

const HASH_BYTES = 32

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < 20 || (major === 20 && minor < 12)) {
  process.stderr.write(`minetree: this is Node.js ${process.versions.node}: install 20.12 or later\n`)
  process.exit(2)
}

// The SDK accesses it while it loads, which makes Node 25 and later print a warning. Only browsers need it.
Reflect.deleteProperty(globalThis, 'localStorage')

const path = import.meta.filename.replace(/\.js$/, '')
const file = `${path}.program.cjs`
const run = load()
run(createRequire(file), file, import.meta.dirname)

/** A function, so that the bytes of the files are not kept while the program runs. */
function load(): Program {
  const program = readFileSync(file)
  const cachedData = readSaved(program)
  // The name in stack traces is part of the cache, so it has no folder.
  const script = new Script(program.toString('latin1'), { filename: basename(file), cachedData })
  return script.runInThisContext()
}

/** The code cache of the program, if it is intact. */
function readSaved(program: Buffer): Buffer | undefined {
  try {
    const saved = readFileSync(`${path}.${process.arch}-${cachedDataVersionTag()}.cache`)
    const data = saved.subarray(HASH_BYTES)
    const hash = createHash('sha256').update(program).update(data).digest()
    return hash.equals(saved.subarray(0, HASH_BYTES)) ? data : undefined
  } catch {
    return undefined
  }
}
