import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

// Builds `dist`, unless it is what the sources make: npm runs this for every `npx` in this folder, and a build takes half a minute
// and would replace the files of a server that runs. A build notes what it starts from (`--building`), and that it came to its end
// (`--built`): until then, `dist` may be a mixture. `--hash` says what the sources are.

const ROOT = import.meta.dirname
const NOTE = join(ROOT, 'dist/built-from')
const FOLDERS = ['src', 'backend/src', 'packages']
const FILES = /\.(?:json|mjs)$/
const MADE = new Set(['dist', 'node_modules'])

/** The files that a build reads, in order. */
function filesIn(folder) {
  return readdirSync(join(ROOT, folder), { withFileTypes: true })
    .sort((one, other) => (one.name < other.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(folder, entry.name)
      if (!entry.isDirectory()) return [path]
      return MADE.has(entry.name) ? [] : filesIn(path)
    })
}

function hashOfSources() {
  const own = readdirSync(ROOT).filter((name) => FILES.test(name))
  const hash = createHash('sha256')
  for (const path of [...own.sort(), ...FOLDERS.flatMap(filesIn)])
    hash.update(`${path}\0`).update(
      createHash('sha256')
        .update(readFileSync(join(ROOT, path)))
        .digest(),
    )
  return hash.digest('hex')
}

function noted() {
  try {
    return readFileSync(NOTE, 'utf8')
  } catch {
    return undefined
  }
}

const UNFINISHED = 'unfinished '

if (process.argv.includes('--hash')) process.stdout.write(hashOfSources())
else if (process.argv.includes('--building')) {
  mkdirSync(dirname(NOTE), { recursive: true })
  writeFileSync(NOTE, UNFINISHED + hashOfSources())
} else if (process.argv.includes('--built')) writeFileSync(NOTE, noted()?.replace(UNFINISHED, '') ?? '')
else if (noted() !== hashOfSources()) {
  const { status } = spawnSync('npm', ['run', 'build'], {
    cwd: ROOT,
    stdio: 'inherit',
    shell: process.platform === 'win32',
  })
  process.exitCode = status ?? 1
}
