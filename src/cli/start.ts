#!/usr/bin/env node
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename } from 'node:path'
import { cachedDataVersionTag } from 'node:v8'
import { Script } from 'node:vm'

/** What a program is bundled as: a CommonJS module, as a function. */
type Program = (require: NodeJS.Require, filename: string, dirname: string) => void

// Runs the bundled program whose name this file has. To parse the command line would take a third of its start. What V8 makes
// of a program is saved when it is bundled (`bundle.mjs`): the same V8 on the same kind of machine takes that, any other parses.
// V8 itself compares only the length of the program, and would crash on a damaged file: so a hash of both comes first in it.

const HASH_BYTES = 32

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < 20 || (major === 20 && minor < 12)) {
  process.stderr.write(`minetree: this is Node.js ${process.versions.node}: install 20.12 or later\n`)
  process.exit(2)
}

// The SDK looks for it while it loads, and Node 25 and later print a warning then. Only browsers have a use for it.
Reflect.deleteProperty(globalThis, 'localStorage')

const path = import.meta.filename.replace(/\.js$/, '')
const file = `${path}.program.cjs`
const run = load()
run(createRequire(file), file, import.meta.dirname)

/** In a function, so that the bytes of the files are not kept as long as the program runs. */
function load(): Program {
  const program = readFileSync(file)
  const cachedData = readSaved(program)
  // The name for stack traces is part of what was saved: without the folder that it was built in.
  const script = new Script(program.toString('latin1'), { filename: basename(file), cachedData })
  return script.runInThisContext()
}

/** What was saved of the program, if it is whole. */
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
