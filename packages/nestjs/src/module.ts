import {
  type DynamicModule,
  Inject,
  type InjectionToken,
  type ModuleMetadata,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
  type OnModuleInit,
  type OptionalFactoryDependency,
} from "@nestjs/common";
import { DiscoveryModule, DiscoveryService, HttpAdapterHost, ModuleRef } from "@nestjs/core";
import type { Receiver } from "@payhooks/core";
import { type AnyReceiver, checkNames, isSetupError } from "@payhooks/core/adapter";
import { PayhooksHealthIndicator } from "./health.ts";
import { type HttpAdapter, type Mounts, mount } from "./mount.ts";
import { registerMethods } from "./register-methods.ts";

/** The options that a factory for the module returns. */
export interface PayhooksFactoryOptions extends Mounts {
  /** The receiver, or a function that makes one for each application. It is started and closed with the application. */
  readonly receiver: AnyReceiver | (() => AnyReceiver | Promise<AnyReceiver>);
  /** How long handlers that run may take when the application closes. Default 10 s. */
  readonly graceMs?: number | undefined;
}

/** Options of {@link PayhooksModule.forRoot}. */
export interface PayhooksModuleOptions extends PayhooksFactoryOptions {
  /** Tells the receivers of an application apart. Default `"default"`. */
  readonly name?: string | undefined;
}

/** Options of {@link PayhooksModule.forRootAsync}. */
export interface PayhooksModuleAsyncOptions extends Pick<ModuleMetadata, "imports"> {
  readonly name?: string | undefined;
  readonly inject?: (InjectionToken | OptionalFactoryDependency)[] | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: as NestJS types its own factories, whose parameters are what `inject` names.
  readonly useFactory: (...injected: any[]) => PayhooksFactoryOptions | Promise<PayhooksFactoryOptions>;
}

/** The token of a receiver, for tests and factories. */
export function receiverToken(name = "default"): string {
  return `payhooks.receiver.${name}`;
}

/** Injects the receiver: `constructor(@InjectReceiver() private readonly receiver: Receiver) {}`. */
export function InjectReceiver(name?: string): ParameterDecorator & PropertyDecorator {
  return Inject(receiverToken(name));
}

/** Has the receiver, for every module. */
class PayhooksReceiverModule {}

/**
 * Mounts a receiver, registers the decorated methods of all providers at it, starts it when the application has
 * started, and closes it when the application closes.
 *
 * @example imports: [PayhooksModule.forRoot({ receiver: () => createReceiver({ … }), paths: { payments: "/callbacks/pay" } })]
 */
// biome-ignore lint/complexity/noStaticOnlyClass: NestJS knows modules by their classes.
export class PayhooksModule {
  /**
   * With options that are there when the module is declared.
   *
   * @throws PayhooksError `ERR_OPTION_INVALID` for an option that does not exist.
   */
  static forRoot({ name, ...options }: PayhooksModuleOptions): DynamicModule {
    checkOptions(options);
    return PayhooksModule.forRootAsync({ name, useFactory: () => options });
  }

  /** With options of a factory, which may inject other providers. */
  static forRootAsync({
    name = "default",
    imports = [],
    inject = [],
    useFactory,
  }: PayhooksModuleAsyncOptions): DynamicModule {
    const receiver = receiverToken(name);
    const options = `payhooks.options.${name}`;
    return {
      module: PayhooksModule,
      imports: [
        DiscoveryModule,
        {
          module: PayhooksReceiverModule,
          global: true,
          imports,
          providers: [
            { provide: options, inject, useFactory },
            { provide: receiver, inject: [options], useFactory: resolveReceiver },
            {
              provide: PayhooksHealthIndicator,
              inject: [receiver],
              useFactory: (instance: AnyReceiver) => new PayhooksHealthIndicator(instance),
            },
          ],
          exports: name === "default" ? [options, receiver, PayhooksHealthIndicator] : [options, receiver],
        },
      ],
      providers: [
        {
          provide: `payhooks.life.${name}`,
          inject: [receiver, options, HttpAdapterHost, DiscoveryService, ModuleRef],
          useFactory: (instance: Receiver, factoryOptions: PayhooksFactoryOptions, ...nest: Nest) =>
            new ReceiverLifecycle(name, instance, factoryOptions, nest),
        },
      ],
    };
  }
}

async function resolveReceiver(options: PayhooksFactoryOptions): Promise<AnyReceiver> {
  checkOptions(options);
  const { receiver } = options;
  return typeof receiver === "function" ? receiver() : receiver;
}

function checkOptions(options: PayhooksFactoryOptions): void {
  checkNames("PayhooksModule", options, {
    receiver: true,
    graceMs: true,
    paths: true,
    probes: true,
    tenant: true,
  });
}

type Nest = readonly [host: HttpAdapterHost, discovery: DiscoveryService, moduleRef: ModuleRef];

/** A receiver in the life of an application. */
class ReceiverLifecycle implements OnModuleInit, OnApplicationBootstrap, OnModuleDestroy {
  readonly #name: string;
  readonly #receiver: Receiver;
  readonly #options: PayhooksFactoryOptions;
  readonly #nest: Nest;
  #isMounted = false;

  constructor(name: string, receiver: Receiver, options: PayhooksFactoryOptions, nest: Nest) {
    this.#name = name;
    this.#receiver = receiver;
    this.#options = options;
    this.#nest = nest;
    this.#mount();
  }

  /** An application of a testing module gets its HTTP adapter only after its providers are made. */
  onModuleInit(): void {
    this.#mount();
  }

  /** Providers are made before the application adds its body parsers, so a receiver that is mounted now comes before them. */
  #mount(): void {
    const [host] = this.#nest;
    const adapter = host?.httpAdapter as HttpAdapter | undefined;
    if (this.#isMounted || adapter === undefined || adapter === null) return;
    this.#isMounted = true;
    mount(this.#receiver, adapter, this.#options);
  }

  /** A wrong set-up ends the start of the application. After any other failure the receiver itself tries again. */
  async onApplicationBootstrap(): Promise<void> {
    const [, discovery, moduleRef] = this.#nest;
    registerMethods(this.#receiver, this.#name, discovery, moduleRef);
    try {
      await this.#receiver.start();
    } catch (error) {
      if (isSetupError(error)) throw error;
    }
  }

  async onModuleDestroy(): Promise<void> {
    await this.#receiver.close({ graceMs: this.#options.graceMs });
  }
}
