import { execFile } from 'node:child_process'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { useBuiltCli } from '../support/built-cli.js'
import { namedWorld, proofOf } from '../support/name-proofs.js'
import { useServers } from '../support/test-server.js'

// The resolver as whoever depends on the package has it: by its name, in JavaScript and with its types.

const built = useBuiltCli()
const { folder } = useServers()
const run = promisify(execFile)
/** For a test, in milliseconds: compilers start slowly where many do. */
const PATIENCE = 60_000

const { deployment, line, origin } = namedWorld()
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')

const PROGRAM = `
import { deploymentOf, formatOutpoint, parseOutpoint, PROFILES, ProofError, verifyNameProof } from 'minetree/client'
const deployment = deploymentOf(PROFILES.local, {
  genesis: parseOutpoint('${formatOutpoint(deployment.genesis)}'),
  difficulty: ${deployment.difficulty},
  nameMarker: 'fake marker',
})
if (deployment === undefined) throw new Error('a genesis is given')
const bytes = (text: string) => Uint8Array.from(text.match(/../g) ?? [], (byte) => parseInt(byte, 16))
const proof = bytes('${hex(proofOf(line))}')
const check = { proof, name: 'abc', deployment, chainTracker: 'scripts only' as const }
const { origin, proven } = await verifyNameProof(check)
const refused: unknown = await verifyNameProof({ ...check, name: 'abd' }).catch((error: unknown) => error)
console.log(formatOutpoint(origin), proven, refused instanceof ProofError && refused.code)
`

/** A folder in which the package is installed under its name, with the program compiled to JavaScript. */
async function compiled(program: string): Promise<string> {
  const path = await folder()
  await mkdir(join(path, 'node_modules'))
  await symlink(built.folder(), join(path, 'node_modules/minetree'))
  await writeFile(join(path, 'package.json'), '{"type": "module"}')
  await writeFile(join(path, 'program.ts'), program)
  const compiler = resolve(import.meta.dirname, '../../node_modules/typescript/bin/tsc')
  // The types of the SDK do not hold by themselves.
  const options = '--skipLibCheck --strict --target es2022 --lib es2022,dom --module nodenext'.split(' ')
  await run(process.execPath, [compiler, ...options, 'program.ts'], { cwd: path })
  return path
}

test(
  'the resolver is imported by the name of the package, with its types, and checks a proof',
  async () => {
    const path = await compiled(PROGRAM)
    const { stdout } = await run(process.execPath, [join(path, 'program.js')])
    expect(stdout).toBe(`${formatOutpoint(origin)} false OTHER_NAME\n`)
  },
  PATIENCE,
)

test(
  'its types tell what is wrong',
  async () => {
    const wrong = PROGRAM.replace('refused.code', 'refused.cod')
    await expect(compiled(wrong)).rejects.toMatchObject({ stdout: expect.stringContaining('cod') })
  },
  PATIENCE,
)
