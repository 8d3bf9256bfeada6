import type { HeaderStore } from '../client/own-headers.js'

const TEXTS = 'texts'

/** Keeps block headers in a database of this origin. */
export class HeaderDatabase implements HeaderStore {
  #database: Promise<IDBDatabase> | undefined

  async get(key: string): Promise<string | undefined> {
    const found: unknown = await resultOf((await this.#texts('readonly')).get(key))
    return typeof found === 'string' ? found : undefined
  }

  async put(key: string, text: string): Promise<void> {
    await resultOf((await this.#texts('readwrite')).put(text, key))
  }

  async #texts(mode: IDBTransactionMode): Promise<IDBObjectStore> {
    this.#database ??= opened()
    return (await this.#database).transaction(TEXTS, mode).objectStore(TEXTS)
  }
}

async function opened(): Promise<IDBDatabase> {
  const request = indexedDB.open('minetree-headers', 1)
  request.onupgradeneeded = () => void request.result.createObjectStore(TEXTS)
  return await resultOf(request)
}

async function resultOf<Result>(request: IDBRequest<Result>): Promise<Result> {
  return await new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
}
