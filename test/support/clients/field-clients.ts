import { execFile } from 'node:child_process'
import { rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { build, stop } from 'esbuild'
import { installedOnce } from '../cli/made-once.js'

const _ROOT = resolve(import.meta.dirname, '../../..')

/**
 * Not in `package.json`: `@1sat/client` depends on a wallet with a database that has to be compiled, which none of its clients
 * use.
 */
const PACKAGE = {
  name: 'field-clients',
  private: true,
  type: 'module',
  dependencies: {
    '@1sat/actions': '0.0.41',
    '@1sat/client': '0.0.9',
    '@1sat/templates': '0.0.38',
    '@bsv/sdk': '2.1.0',
    'js-1sat-ord': '0.1.91',
  },
  // The templates name a version that the registry does not have.
  overrides: { '@bsv/sdk': '2.1.0', '@1sat/types': '0.0.10' },
}
/** Bundled: the packages leave out the extensions of their own files, which Node needs. */
const ENTRY = `
export { BeefClient, HttpError, OneSatServices, OrdfsClient, OverlayClient, TxoClient } from '@1sat/client'
export { resolveOrdinalTags } from '@1sat/actions'
export { default as Inscription } from './node_modules/@1sat/templates/dist/inscription/inscription.js'
export { MerklePath, P2PKH, PrivateKey, Transaction } from '@bsv/sdk'
export { createOrdinals } from 'js-1sat-ord'
`

type Bytes = Uint8Array
type Options = { timeout?: number }

/** What the tests use of the packages, as their type declarations have it. */
export interface FieldClients {
  BeefClient: new (
    url: string,
    options?: Options,
  ) => Record<'getBeef' | 'getRawTx' | 'getProof', (txid: string) => Promise<Bytes>>
  TxoClient: new (
    url: string,
    options?: Options,
  ) => {
    get(
      outpoint: string,
      options?: { sats?: boolean; spend?: boolean; block?: boolean; tags?: string[] },
    ): Promise<Record<string, unknown>>
    getSpend(outpoint: string): Promise<string | null>
  }
  OverlayClient: new (
    url: string,
    options?: Options,
  ) => {
    listTopicManagers(): Promise<Record<string, unknown>>
    listLookupServiceProviders(): Promise<Record<string, unknown>>
    submit(beef: Bytes, topics: string[]): Promise<Record<string, unknown>>
  }
  OrdfsClient: new (
    url: string,
    options?: Options,
  ) => {
    getMetadata(outpoint: string, sequence?: number): Promise<Record<string, unknown>>
    bulkMetadata(outpoints: string[]): Promise<Record<string, unknown>>
    getContent(
      outpoint: string,
      options?: { seq?: number; map?: boolean },
    ): Promise<{ data: Bytes; headers: Record<string, unknown> }>
  }
  OneSatServices: new (
    chain: 'main' | 'test',
    url: string,
  ) => {
    getCapabilities(): Promise<string[]>
    getRawTx(txid: string): Promise<{ rawTx?: number[] }>
    getBeefForTxid(txid: string): Promise<{ findTxid(txid: string): unknown }>
    isUtxo(output: { txid: string; vout: number }): Promise<boolean>
    getUtxoStatus(output: string, format: undefined, outpoint: string): Promise<Record<string, unknown>>
    owner: { getBalance(owner: string): Promise<unknown> }
    arcade: { getPolicy(): Promise<unknown> }
    ordfs: InstanceType<FieldClients['OrdfsClient']>
  }
  HttpError: new (status: number, message: string) => Error & { status: number }
  resolveOrdinalTags(
    context: { services: unknown },
    outpoint: string,
  ): Promise<{ tags: string[]; basket: string }>
  createOrdinals(config: unknown): Promise<{ tx: SdkTransaction }>
  Inscription: { fromText(text: string, type: string, options?: unknown): { lock(): unknown } }
  MerklePath: { fromBinary(bytes: number[]): { blockHeight: number; computeRoot(txid: string): string } }
  P2PKH: new () => { lock(address: string): { toBinary(): number[]; toHex(): string } }
  PrivateKey: new (value: number) => { toAddress(): string }
  Transaction: {
    new (version: number, inputs: unknown[], outputs: unknown[]): SdkTransaction
    fromBEEF(bytes: number[]): SdkTransaction
  }
}

interface SdkTransaction {
  id(format: 'hex'): string
  toBinary(): number[]
  inputs: { sourceTXID?: string; sourceTransaction?: SdkTransaction }[]
  merklePath?: unknown
}

/** The clients, or what this machine lacks to install them. */
export type Installed = { clients: FieldClients } | { missing: string }

/** Installs the field's packages from npm, once for as long as the versions stay the same, and loads them. */
export async function fieldClients(): Promise<Installed> {
  const key = JSON.stringify(PACKAGE) + ENTRY
  const installed = await installedOnce({ kind: 'field-clients', key, make: install })
  if ('missing' in installed) return installed
  const url = pathToFileURL(join(installed.folder, 'clients.mjs')).href
  return { clients: (await import(url)) as FieldClients }
}

async function install(folder: string): Promise<void> {
  await writeFile(join(folder, 'package.json'), JSON.stringify(PACKAGE))
  await writeFile(join(folder, 'entry.js'), ENTRY)
  // Peer dependencies left alone: some ask for newer versions than the registry has.
  const flags = ['--ignore-scripts', '--legacy-peer-deps', '--prefer-offline', '--no-audit', '--no-fund']
  await promisify(execFile)('npm', ['install', ...flags], { cwd: folder })
  await build({
    entryPoints: [join(folder, 'entry.js')],
    outfile: join(folder, 'clients.mjs'),
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    external: ['bun:sqlite'],
    banner: {
      js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
    },
    logLevel: 'silent',
  })
  await stop()
  // Only the bundle is used from here on.
  await rm(join(folder, 'node_modules'), { recursive: true })
}
