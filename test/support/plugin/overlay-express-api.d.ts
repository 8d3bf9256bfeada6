import type * as Engine from '@bsv/overlay'
import type { ChainTracker } from '@bsv/sdk'
import type { Express } from 'express'
import type { Knex } from 'knex'
import type { Db } from 'mongodb'
import type { LookupService2, TopicManager2 } from './engine-2.js'

// What `@bsv/overlay-express` declares, of what a program that hosts plugins calls, with the interfaces of several engines at
// once: what is passed must suit each of them.

type TopicManager = Engine.TopicManager & TopicManager2
type LookupService = Engine.LookupService & LookupService2

interface Migration {
  name?: string
  up: (knex: Knex) => Promise<void>
  down?: (knex: Knex) => Promise<void>
}

export default class OverlayExpress {
  app: Express
  knex?: Knex
  mongoDb?: Db
  engine?: Engine.Engine
  chainTracker: ChainTracker | 'scripts only'
  constructor(name: string, privateKey: string, advertisableFQDN: string, adminToken?: string)
  configurePort(port: number): void
  configureKnex(config: Knex.Config | string): Promise<void>
  configureMongo(connectionString: string): Promise<void>
  configureTopicManager(name: string, manager: TopicManager): void
  configureLookupServiceWithKnex(
    name: string,
    serviceFactory: (knex: Knex) => { service: LookupService; migrations: Migration[] },
  ): void
  configureLookupServiceWithMongo(name: string, serviceFactory: (mongoDb: Db) => LookupService): void
  configureEngine(autoConfigureShipSlap?: boolean): Promise<void>
  start(): Promise<void>
}
