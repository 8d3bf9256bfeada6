import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { useBuiltCli } from '../../support/cli/built-cli.js'
import { dependent } from '../../support/cli/dependent.js'
import { namedWorld, proofOf } from '../../support/client/name-proofs.js'
import { useServers } from '../../support/server/test-server.js'

// The package as a dependent package uses it: by name, in JavaScript and with its types.

const built = useBuiltCli()
const { folder } = useServers()
const { deployment, line, origin } = namedWorld()

const CLIENT = `
import { deploymentOf, formatOutpoint, parseOutpoint, PROFILES, ProofError, verifyNameProof } from 'minetree/client'
const deployment = deploymentOf(PROFILES.local, {
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
const terms = termsOf(PROFILES.local, { difficulty: 12 })
const deployment = deploymentOf(PROFILES.local, { genesis, difficulty: 12 })
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

describe.each([
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
])('minetree/$entry', ({ program, says, right, wrong, complaint }) => {
  test('runs in a program that depends on the package', async () => {
    const { run } = await dependent({ built: built.folder(), empty: await folder() })
    expect(JSON.parse(await run(program))).toEqual(says)
  })

  test('brings its types', async () => {
    const { compile } = await dependent({ built: built.folder(), empty: await folder() })
    await compile(program)
    const compiled = compile(program.replace(right, wrong))
    await expect(compiled).rejects.toMatchObject({ stdout: expect.stringContaining(complaint) })
  })
})
