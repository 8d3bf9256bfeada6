import {
  OverlayAdminTokenTemplate,
  PrivateKey,
  ProtoWallet,
  PushDrop,
  Transaction,
  UnlockingScript,
  Utils,
} from '@bsv/sdk'
import { formatOutpoint } from '../../../../backend/src/protocol/outpoint.js'
import { namedWorld, outpointBeef, recordsOf } from '../../../support/client/name-proofs.js'
import { provenAlone } from '../../../support/protocol/transactions.js'
import type { Attack, Scene } from '../attack.js'
import { BODY_DEEDS, bodyDeeds, sendWhole } from '../body-deeds.js'
import { MULTISIG_BYTES } from '../expensive-scripts.js'
import { answer, type Handler } from '../hostile-server.js'
import { doing } from '../index-front.js'
import type { Stage } from '../stage.js'
import { expensiveHistory } from './resolve.js'

const world = namedWorld()

/** The truth, as a lookup host answers it. */
const TRUE_HISTORY = {
  type: 'output-list',
  outputs: [
    {
      outputIndex: world.tip.vout,
      beef: Array.from(
        outpointBeef(
          world.tip,
          recordsOf([...world.line, world.transfers[0], world.purse, world.transfers[1]]),
        ).subarray(40),
      ),
    },
  ],
}

/**
 * `minetree/client` in a program of its own, which asks the hosts that a tracker names. Its `fetch` takes every host
 * `https://<name>.example` to the path `/<name>` of one server.
 */
export const CLIENT_PROGRAM = `
const [, main, base, trackers, hosts, terms] = process.argv
const client = await import(new URL('../src/client/index.js', main))
const { genesis, difficulty, nameMarker } = JSON.parse(terms)
const deployment = client.deploymentOf(client.PROFILES.local, {
  genesis: client.parseOutpoint(genesis), difficulty, nameMarker,
})
const fetching = (url, init) => {
  const { hostname, pathname } = new URL(url)
  return fetch(base + '/' + hostname.replace('.example', '') + pathname, init)
}
const resolver = {
  networkPreset: 'mainnet',
  slapTrackers: JSON.parse(trackers).map((name) => 'https://' + name + '.example'),
  ...(hosts !== '[]' && { hostOverrides: { ls_names: JSON.parse(hosts).map((name) => 'https://' + name + '.example') } }),
}
const source = new client.LookupNameSource({ resolver, fetch: fetching })
try {
  const { tip, reports } = await client.resolveName({ name: 'abc', deployment, chainTracker: 'scripts only', sources: [source] })
  console.log(JSON.stringify({ tip: client.formatOutpoint(tip.tip), reports: reports.map(({ verdict }) => verdict) }))
} catch (error) {
  console.error(error.name + ' ' + error.code + ': ' + error.message)
  process.exitCode = 1
}
`

/** What the client prints where it finds the truth. */
export const TRUE_TIP = formatOutpoint(world.tip)

interface Hosts {
  trackers?: string[]
  hosts?: string[]
  /** What is done at `/<name>/lookup`. */
  answers: (name: string) => Handler
}

async function clientScene(stage: Stage, { trackers = [], hosts = [], answers }: Hosts): Promise<Scene> {
  const { url } = await stage.serve((request, response) =>
    answers(request.path.split('/')[1] ?? '')(request, response),
  )
  const { genesis, difficulty, marker } = world.deployment
  const terms = { genesis: formatOutpoint(genesis), difficulty, nameMarker: Buffer.from(marker).toString() }
  const args = [url, JSON.stringify(trackers), JSON.stringify(hosts), JSON.stringify(terms)]
  return { args, env: {} }
}

const truth: Handler = (_, response) => answer(response, TRUE_HISTORY)

/** What trackers and lookup hosts can do to users of the client. */
export function clientAttacks(): Attack[] {
  const attack = (server: string, deed: string, hosts: (stage: Stage) => Hosts | Promise<Hosts>): Attack => ({
    ...{ target: 'client', server, deed },
    set: async (stage) => await clientScene(stage, await hosts(stage)),
  })
  const beside = (deed: string, does: (stage: Stage) => Handler): Attack =>
    attack('lookup host', deed, (stage) => {
      const own = does(stage)
      return { hosts: ['bad', 'good'], answers: (name) => (name === 'good' ? truth : own) }
    })
  return [
    ...bodyDeeds().map(({ name, deed, atNight }) => ({
      ...beside(name, (stage) => doing(deed, stage)),
      atNight,
    })),
    ...MULTISIG_BYTES.map((bytes) =>
      beside(`a history with an OP_CHECKMULTISIG of ${bytes / 1000} KB`, () => {
        const history = expensiveHistory(bytes)
        return (_, response) => answer(response, history)
      }),
    ),
    attack('lookup host', '20 hosts with 60 MiB each', (stage) => {
      const hosts = Array.from({ length: 20 }, (_, index) => `bad${index}`)
      const heavy = doing(BODY_DEEDS['60 MiB of empty objects'], stage)
      return { hosts: ['good', ...hosts], answers: (name) => (name === 'good' ? truth : heavy) }
    }),
    attack('lookup host', '20 hosts with 60 MiB of a BEEF each', () => {
      const hosts = Array.from({ length: 20 }, (_, index) => `bad${index}`)
      const body = Buffer.from(
        `{"type":"output-list","outputs":[{"outputIndex":0,"beef":[${'1,'.repeat(31_000_000)}1]}]}`,
      )
      const heavy: Handler = (_, response) => sendWhole(response, body)
      return { hosts: ['good', ...hosts], answers: (name) => (name === 'good' ? truth : heavy) }
    }),
    attack('tracker', '500 hosts that answer nothing', async () => {
      const tracked = await slapAnswer(Array.from({ length: 500 }, (_, index) => `bad${index}`))
      const hang: Handler = () => undefined
      return { trackers: ['tracker'], answers: (name) => (name === 'tracker' ? tracked : hang) }
    }),
    attack('tracker', '500 hosts with 1 MiB each', async () => {
      const tracked = await slapAnswer(Array.from({ length: 500 }, (_, index) => `bad${index}`))
      const body = Buffer.alloc(1024 * 1024, ' ')
      const heavy: Handler = (_, response) => sendWhole(response, body)
      return { trackers: ['tracker'], answers: (name) => (name === 'tracker' ? tracked : heavy) }
    }),
    ...bodyDeeds('some').map(({ name, deed, atNight }) => ({
      ...attack('tracker', name, async (stage) => {
        const good = await slapAnswer(['good'])
        const bad = doing(deed, stage)
        const handlers: Record<string, Handler> = { good: truth, honest: good, hostile: bad }
        return { trackers: ['hostile', 'honest'], answers: (host) => handlers[host] ?? bad }
      }),
      atNight,
    })),
  ]
}

/** What a SLAP tracker answers of these hosts (BRC-101): a token of each. */
async function slapAnswer(names: string[]): Promise<Handler> {
  const key = new PrivateKey(5)
  const identity = key.toPublicKey().encode(true) as number[]
  const drop = new PushDrop(new ProtoWallet(key) as unknown as ConstructorParameters<typeof PushDrop>[0])
  const outputs: object[] = []
  for (const [index, name] of names.entries()) {
    const fields = ['SLAP', identity, `https://${name}.example`, 'ls_names'].map((field) =>
      typeof field === 'string' ? Utils.toArray(field, 'utf8') : field,
    )
    const lockingScript = await drop.lock(
      fields,
      [2, 'service lookup availability'],
      '1',
      'self',
      true,
      false,
    )
    if (index === 0) OverlayAdminTokenTemplate.decode(lockingScript)
    const token = new Transaction()
    token.addInput({
      sourceTXID: index.toString(16).padStart(64, 'f'),
      sourceOutputIndex: 0,
      unlockingScript: new UnlockingScript(),
    })
    token.addOutput({ satoshis: 1, lockingScript })
    outputs.push({ outputIndex: 0, beef: provenAlone(token).toBEEF() })
  }
  const tracked = { type: 'output-list', outputs }
  return (_, response) => answer(response, tracked)
}

/** What the client takes where nobody means harm. */
export const HONEST_CLIENT: Attack = {
  ...{ target: 'client', server: 'honest', deed: 'a tracker that names two hosts' },
  async set(stage) {
    const tracked = await slapAnswer(['good', 'other'])
    return await clientScene(stage, {
      trackers: ['tracker'],
      answers: (name) => (name === 'tracker' ? tracked : truth),
    })
  },
}
