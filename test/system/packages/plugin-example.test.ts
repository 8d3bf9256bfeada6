import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, symlink, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { outpointLabel } from '../../../backend/src/protocol/host-label.js'
import { parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { typescript } from '../../support/cli/dependent.js'
import type { Installation } from '../../support/cli/made-once.js'
import { offeredRequests } from '../../support/gateway/offered.js'
import { sampleOf } from '../../support/nightly.js'
import { installedBeside } from '../../support/plugin/installed-beside.js'
import { beefOf, FakeChain, inscriptionScript, p2pkh } from '../../support/protocol/fake-chain.js'
import { ask, posted, type Question, submission, useServers } from '../../support/server/test-server.js'
import { untilListening } from '../../support/server/until-listening.js'
import { eventually } from '../../support/server/waiting.js'

// The program of docs/plugin.md, as an operator has it: compiled and run in a folder with the package from its tarball and
// a host that has its own copies of the SDK, of Express and of the MongoDB driver.

const ROOT = resolve(import.meta.dirname, '../../..')
const { folder } = useServers()

const page = await readFile(join(ROOT, 'docs/plugin.md'), 'utf8')
const [, example = ''] = /^```ts\n(import OverlayExpress .*?)^```$/ms.exec(page) ?? []

/** Which engine each has. */
const ENGINES = { '0.8': '0.5.4', '2.2': '2.0.2' }

const installations: [host: keyof typeof ENGINES, installed: Installation][] = []
// By day the one whose versions are none of ours: quick tests run every engine beside those.
for (const host of sampleOf(['0.8', '2.2'] as const, 2))
  installations.push([host, await installedBeside(host)])

/** A folder with programs by their names, and what is installed for them. */
async function folderWith(installed: string, programs: Record<string, string>): Promise<string> {
  const cwd = await folder()
  await writeFile(join(cwd, 'package.json'), '{"type":"module"}')
  for (const [name, program] of Object.entries(programs)) await writeFile(join(cwd, `${name}.ts`), program)
  await symlink(join(installed, 'node_modules'), join(cwd, 'node_modules'))
  return cwd
}

/** Compiles programs with all declarations, and returns what the compiler says against them or this package. */
async function complaints(cwd: string, names: string[]): Promise<string[]> {
  const options = '--strict --target es2022 --module nodenext --types node --ignoreConfig'.split(' ')
  const files = names.map((name) => `${name}.ts`)
  const said = await typescript(cwd, [...options, ...files]).then(
    () => '',
    ({ stdout }: { stdout: string }) => stdout,
  )
  return said.split('\n').filter((line) => /^\w+\.ts|node_modules\/minetree\//.test(line))
}

let running: ChildProcess | undefined
afterEach(async () => {
  const child = running
  running = undefined
  if (child?.kill('SIGKILL')) await once(child, 'close')
})

async function started(cwd: string, engine = ''): Promise<string> {
  const env = {
    OVERLAY_ENGINE: engine,
    ...{ SERVER_PRIVATE_KEY: '11'.repeat(32), HOSTING_FQDN: 'overlay.test', PORT: '0' },
    ...{ KNEX_URL: `sqlite:${await folder()}`, MONGO_URL: '' },
    // Nobody answers there.
    CHAIN_SOURCES: 'junglebus=http://127.0.0.1:1',
  }
  const child = spawn(process.execPath, ['index.js'], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  running = child
  return await untilListening(child)
}

describe.each(installations)('beside what OverlayExpress %s brings along', (host, installed) => {
  if ('missing' in installed) {
    test.skip(`there is ${installed.missing}`, () => {})
    return
  }
  test('the program of docs/plugin.md compiles, a wrong one does not, and it starts and serves what it is sent', async () => {
    const offering = example.replace(
      'stores, { follower }',
      `stores, { follower, explorer: true, gatewayHost: 'names.test' }`,
    )
    expect(offering).not.toBe(example)
    const onMongo = example
      .replaceAll('server.knex', 'server.mongoDb')
      .replace(/WithKnex\((.*), (create\w+)/g, 'WithMongo($1, $2OnMongo')
      .replace(/create\w+LookupService,/g, (name) => `${name.slice(0, -1)}OnMongo,`)
    const wrong = example.replace('storesOf(server.knex)', 'storesOf(server.app)')
    const programs = { index: offering, example, onMongo, wrong }
    const cwd = await folderWith(installed.folder, programs)
    expect(await complaints(cwd, Object.keys(programs))).toEqual([
      expect.stringMatching(
        /^wrong\.ts.* is not assignable to parameter of type 'HostDatabase \| undefined'/,
      ),
    ])
    const url = await started(cwd, ENGINES[host])

    const chain = new FakeChain()
    const purse = chain.spend({ inputs: [], outputs: [{ satoshis: 9, lockingScript: p2pkh(1) }] })
    const lockingScript = inscriptionScript({ contentType: 'text/plain', body: utf8('kept') })
    const inscription = chain.spend({
      inputs: [{ transaction: purse, vout: 0 }],
      outputs: [{ satoshis: 1, lockingScript }],
    })
    const sent = submission(beefOf(inscription, { with: [purse] }), ['tm_names', 'tm_ordinals'])
    expect(await ask(url, '/submit', sent)).toMatchObject({
      status: 200,
      json: { tm_ordinals: { outputsToAdmit: [0] } },
    })
    const outpoint = inscription.outpoint(0)
    // A host answers before it has stored anything.
    await eventually(async () => {
      const found = await ask(url, '/lookup', posted({ service: 'ls_ordinals', query: { outpoint } }))
      expect(found).toMatchObject({ status: 200, json: { outputs: [{ outputIndex: 0 }] } })
    })
    const content = await ask(url, `/content/${outpoint}`)
    expect([content.status, content.body.toString('utf8')]).toEqual([200, 'kept'])
    expect(await ask(url, '/listTopicManagers')).toMatchObject({
      json: { tm_names: { name: 'Mined names', version: '0.1.0' } },
    })
    // The pages are in the package, and everything that is described is there.
    const asked = (path: string, question?: Question) => ask(url, path, question)
    for (const path of ['/', `/ordinal/${outpoint}`, '/explorer/style.css', '/mine/main.js'])
      expect([path, (await asked(path)).status]).toEqual([path, 200])
    const { requests } = await offeredRequests(asked, { outpoint, name: 'a' })
    const unknown = requests.filter(([, { body }]) => body.includes('ERR_ROUTE_NOT_FOUND'))
    expect([requests.length > 60, unknown.map(([request]) => request)]).toEqual([true, []])
    const Host = `${outpointLabel(parseOutpoint(outpoint))}.c.names.test`
    expect((await asked('/', { headers: { Host } })).body.toString()).toBe('kept')
  })
})
