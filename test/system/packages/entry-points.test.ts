import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { useBuiltCli } from '../../support/cli/built-cli.js'
import { builtClient } from '../../support/cli/built-package.js'
import { type Dependent, dependent, requiresModules } from '../../support/cli/dependent.js'
import { namedWorld, proofOf } from '../../support/client/name-proofs.js'
import { useServers } from '../../support/server/test-server.js'

// The packages as a dependent package uses them: by name, in JavaScript and with their types.

const ROOT = resolve(import.meta.dirname, '../../..')
const built = useBuiltCli()
let client = ''
beforeAll(async () => {
  client = await builtClient()
})
const { folder } = useServers()
const { deployment, line, origin } = namedWorld()

const CLIENT = `
import { deploymentOf, formatOutpoint, parseOutpoint, PROFILES, ProofError, verifyNameProof } from 'minetree/client'
const deployment = deploymentOf(PROFILES.local, { covenantVersion: 2,
  genesis: parseOutpoint('${formatOutpoint(deployment.genesis)}'),
  difficulty: ${deployment.difficulty},
  nameMarker: 'fake marker',
})
if (deployment === undefined) throw new Error('a genesis is given')
const proof = Uint8Array.from([${proofOf(line).join()}])
const chainTracker = 'scripts only'
const { origin, proven } = await verifyNameProof({ proof, name: 'abc', deployment, chainTracker })
let code = ''
try {
  await verifyNameProof({ proof, name: 'abd', deployment, chainTracker })
} catch (error) {
  if (error instanceof ProofError) code = error.code
}
console.log(JSON.stringify([formatOutpoint(origin), proven, code]))
`

const MINING = `
import { deploymentOf, MintError, ownerCommitment, PROFILES, rootLock, searchNonce, solvePlan, termsOf } from 'minetree/mining'
const genesis = { txid: 'ab'.repeat(32), vout: 0 }
const terms = termsOf(PROFILES.local, { covenantVersion: 2, difficulty: 12 })
const deployment = deploymentOf(PROFILES.local, { covenantVersion: 2, genesis, difficulty: 12 })
if (deployment === undefined) throw new Error('no deployment')
const node = { outpoint: genesis, satoshis: 1, lockingScript: rootLock(terms) }
const ownerLock = Uint8Array.of(0x51)
const noncePrefix = ownerCommitment({ domain: '', ownerLock, deployment })
const search = { seed: new Uint8Array(), character: 'q', difficulty: 12, noncePrefix, workers: 2 }
const { nonce } = await searchNonce(search)
const plan = { node, deployment, character: 'q', nonce, ownerLock }
const { mint, outputs } = solvePlan(plan)
let code = ''
try {
  solvePlan({ ...plan, ownerLock: Uint8Array.of(0x52) })
} catch (error) {
  if (error instanceof MintError) code = error.code
}
console.log(JSON.stringify([mint.name, outputs.length, code]))
`

const PUBLISH = `
import { layOutFile, layOutFolder, layOutStream, PROFILES, PublishError } from 'minetree/publish'
const lock = Uint8Array.of(0x51)
const bytes = new TextEncoder().encode('hello')
const single = layOutFile({ name: 'a.txt', bytes, lock })
const steps = layOutStream({ name: 'a.txt', bytes, lock, profile: PROFILES.local, streamChunkSize: 2 })
const { outputs, root } = layOutFolder({ entries: [{ name: 'index.html', bytes }], lock, profile: PROFILES.local })
let code = ''
try {
  layOutFile({ name: 'a.txt', bytes, lock: Uint8Array.of(0x6a) })
} catch (error) {
  if (error instanceof PublishError) code = error.code
}
console.log(JSON.stringify([single.satoshis, steps.length, outputs.length, root, code]))
`

const PROGRAMS = [
  {
    ...{ entry: 'client', program: CLIENT, says: [formatOutpoint(origin), false, 'OTHER_NAME'] },
    ...{ right: 'error.code', wrong: 'error.cod', complaint: 'cod' },
  },
  {
    ...{ entry: 'mining', program: MINING, says: ['q', 3, 'BAD_NONCE'] },
    ...{ right: 'workers: 2', wrong: 'workers: "2"', complaint: 'workers' },
  },
  {
    ...{ entry: 'publish', program: PUBLISH, says: [1, 3, 2, 0, 'BAD_LOCK'] },
    ...{ right: 'single.satoshis', wrong: 'single.satoshi', complaint: 'satoshi' },
  },
]

/** The entries of a package, by the names under which they are imported. */
function entriesOf(folder: string): Record<string, string> {
  const { name, exports } = JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8')) as {
    name: string
    exports: Record<string, { default: string }>
  }
  const modules = Object.entries(exports).filter(([path]) => path !== './package.json')
  return Object.fromEntries(modules.map(([path, { default: file }]) => [join(name, path), file]))
}

/** The entries of `minetree` that `minetree-client` has. */
const IN_BROWSERS = /^minetree\/(?:client|identity|mining|payments|publish)(?:\/|$)/

/** The name of an entry of `minetree` in the package of the client. */
const clientName = (entry: string): string =>
  entry.replace(/^minetree\/client/, 'minetree-client').replace(/^minetree\//, 'minetree-client/')

const dependentOn = async (name: string): Promise<Dependent> =>
  await dependent({ name, built: name === 'minetree' ? built.folder() : client, empty: await folder() })

/** The same program for a package. */
const programFor = (program: string, name: string): string =>
  name === 'minetree'
    ? program
    : program.replace(/'(minetree\/\w+)'/g, (_, entry: string) => `'${clientName(entry)}'`)

describe.each(['minetree', 'minetree-client'])('the package %s', (name) => {
  const entries = Object.keys(entriesOf(name === 'minetree' ? '.' : 'packages/client'))

  test.each(PROGRAMS)('runs in a program that depends on it: $entry', async ({ program, says }) => {
    const { run } = await dependentOn(name)
    expect(JSON.parse(await run(programFor(program, name)))).toEqual(says)
  })

  // By strict rules, those of what they import too; the drivers in `minetree/plugin` ask for Node's types, and a browser's program has none.
  const types = name === 'minetree' ? ['node'] : []
  const everything = [
    ...entries.map((entry, index) => `import * as entry${index} from '${entry}'`),
    `console.log(${entries.map((_, index) => `entry${index}`)})`,
  ].join('\n')

  test('brings its types, and its declarations have no error for node16', async () => {
    const { compile } = await dependentOn(name)
    const mistaken = PROGRAMS.map(({ program, right, wrong }) =>
      programFor(program, name).replace(right, wrong),
    )
    const refused: unknown = await compile([...mistaken, everything], { types }).catch(
      (error: unknown) => error,
    )
    const { stdout } = refused as { stdout: string }
    for (const [at, { complaint }] of PROGRAMS.entries())
      expect(stdout).toMatch(new RegExp(`^program${at}\\.ts.*error TS.*${complaint}`, 'm'))
    // Of these, and of nothing else.
    expect(stdout.match(/error TS/g)).toHaveLength(PROGRAMS.length)
  })

  test('has no error for bundlers either', async () => {
    const { compile } = await dependentOn(name)
    await compile([everything], { resolution: 'bundler', types })
  })
})

test('both packages export the same, to modules and to programs that require them', async () => {
  const ours = Object.keys(entriesOf('.')).filter((name) => IN_BROWSERS.test(name))
  expect(Object.keys(entriesOf('packages/client'))).toEqual(ours.map(clientName))
  const all = Object.keys(entriesOf('.')).filter((name) => !name.endsWith('-worker'))
  const libraries = all.filter((name) => IN_BROWSERS.test(name))
  const whole = await dependentOn('minetree')
  const light = await dependentOn('minetree-client')
  const list = (names: string[]): string => {
    const keys = (load: string): string => `[${names.map((name) => `Object.keys(${load}('${name}'))`)}]`
    const loads = requiresModules ? ['await import', 'require'] : ['await import']
    return `(async () => console.log(JSON.stringify([${loads.map(keys)}])))()`
  }
  const [exported = [], required = exported] = JSON.parse(await whole.run(list(all), 'cjs')) as string[][][]
  expect(exported.map((names) => names.length > 0)).toEqual(all.map(() => true))
  expect(required).toEqual(exported)
  const ofLibraries = exported.filter((_, at) => libraries.includes(all[at] ?? ''))
  for (const each of JSON.parse(await light.run(list(libraries.map(clientName)), 'cjs')))
    expect(each).toEqual(ofLibraries)
})

/** What the modules of an entry import from outside, the whole way down, dynamically too. */
async function importsOf(file: string): Promise<string[]> {
  const { metafile } = await build({
    ...{ entryPoints: [file], bundle: true, write: false, metafile: true, logLevel: 'silent' },
    ...{ format: 'esm', platform: 'neutral', packages: 'external', external: ['node:*'] },
  })
  const all = Object.values(metafile.inputs).flatMap(({ imports }) => imports)
  return [...new Set(all.filter(({ external }) => external).map(({ path }) => path))].sort()
}

const NODE = ['node:os', 'node:worker_threads']
/** The one entry that is for Node alone. */
const FOR_FILES = '/file-segment-store'

describe('the import graph of what runs in browsers', () => {
  test.each([
    ['minetree/client', ['@bsv/sdk']],
    ['minetree/identity', ['@bsv/sdk']],
    ['minetree/mining', ['@bsv/sdk', ...NODE, 'zod/mini']],
    ['minetree/publish', ['@bsv/sdk', 'mime']],
  ])('%s and its workers import nothing but %j', async (entry, allowed) => {
    const entries = Object.entries(entriesOf('.')).filter(
      ([name]) => (name === entry || name.startsWith(`${entry}/`)) && !name.endsWith(FOR_FILES),
    )
    for (const [, file] of entries)
      expect(allowed).toEqual(expect.arrayContaining(await importsOf(join(built.folder(), file))))
  })

  test('the package of the client imports nothing but the SDK, and Node for threads', async () => {
    for (const [name, file] of Object.entries(entriesOf('packages/client'))) {
      if (name.endsWith(FOR_FILES)) continue
      const allowed = name.startsWith('minetree-client/mining') ? ['@bsv/sdk', ...NODE] : ['@bsv/sdk']
      expect(allowed).toEqual(expect.arrayContaining(await importsOf(join(client, file))))
    }
  })

  const resolving = ['deploymentOf', 'PROFILES', 'resolveName']
  test.each([
    [30, resolving],
    [48, [...resolving, 'verifiedFetch', 'serveVerifiedSite']],
  ])('at most %i KiB beside the SDK, compressed, are in a page that imports %j', async (most, names) => {
    const { '.': main = '' } = Object.fromEntries(
      Object.entries(entriesOf('packages/client')).map(([name, file]) => [
        name.replace('minetree-client', '.'),
        file,
      ]),
    )
    const { outputFiles } = await build({
      ...{ stdin: { contents: `export { ${names} } from './${main}'`, resolveDir: client }, write: false },
      ...{ bundle: true, minify: true, format: 'esm', target: 'es2022', external: ['@bsv/sdk', 'node:*'] },
    })
    expect(gzipSync(outputFiles[0]?.text ?? '', { level: 9 }).length).toBeLessThan(most * 1024)
  })
})
