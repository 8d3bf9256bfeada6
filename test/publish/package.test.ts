import { execFile } from 'node:child_process'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { useBuiltCli } from '../support/built-cli.js'
import { useServers } from '../support/test-server.js'

// The package as whoever depends on it has it: by its name, in JavaScript and with its types.

const built = useBuiltCli()
const { folder } = useServers()
const run = promisify(execFile)
/** For a test, in milliseconds: compilers start slowly where many do. */
const PATIENCE = 60_000

const PROGRAM = `
import { CovenantError, covenantCode } from 'minetree/mining'
import { layOutFile, layOutFolder, layOutStream, PROFILES, PublishError } from 'minetree/publish'
const lock = Uint8Array.of(0x51)
const bytes = new TextEncoder().encode('hello')
const single = layOutFile({ name: 'a.txt', bytes, lock })
const steps = layOutStream({ name: 'a.txt', bytes, lock, profile: PROFILES.local, streamChunkSize: 2 })
const { outputs, root } = layOutFolder({ entries: [{ name: 'index.html', bytes }], lock, profile: PROFILES.local })
const terms = { difficulty: 22, nameContentType: 'application/name-claim', marker: bytes }
let code = ''
try {
  layOutFile({ name: 'a.txt', bytes, lock: Uint8Array.of(0x6a) })
} catch (error) {
  if (error instanceof PublishError) code = error.code
}
let refused = ''
try {
  covenantCode({ ...terms, difficulty: 33 })
} catch (error) {
  if (error instanceof CovenantError) refused = error.code
}
const covenant = [covenantCode(terms).length > 0, refused]
console.log(JSON.stringify([single.satoshis, steps.length, outputs.length, root, code, ...covenant]))
`

/** A folder in which the package is installed under its name. */
async function dependent(): Promise<string> {
  const path = await folder()
  await mkdir(join(path, 'node_modules'))
  await symlink(built.folder(), join(path, 'node_modules/minetree'))
  await writeFile(join(path, 'package.json'), '{"type": "module"}')
  return path
}

test(
  'the publishing helpers and the covenant are imported by the name of the package',
  async () => {
    const path = await dependent()
    await writeFile(join(path, 'program.js'), PROGRAM)
    const { stdout } = await run(process.execPath, [join(path, 'program.js')])
    expect(JSON.parse(stdout)).toEqual([1, 3, 2, 0, 'BAD_LOCK', true, 'BAD_TERMS'])
  },
  PATIENCE,
)

test(
  'they bring their types',
  async () => {
    const path = await dependent()
    const compiler = resolve(import.meta.dirname, '../../node_modules/typescript/bin/tsc')
    const compile = async (program: string) => {
      await writeFile(join(path, 'program.ts'), program)
      const options = '--noEmit --strict --target es2022 --lib es2022,dom --module nodenext'.split(' ')
      return await run(process.execPath, [compiler, ...options, 'program.ts'], { cwd: path })
    }
    await compile(PROGRAM)
    const wrong = PROGRAM.replace('single.satoshis', 'single.satoshi')
    await expect(compile(wrong)).rejects.toMatchObject({ stdout: expect.stringContaining('satoshi') })
  },
  PATIENCE,
)
