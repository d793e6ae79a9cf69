import "reflect-metadata";
import { Injectable, Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import {
  type ConnectEvent,
  createReceiver,
  type HandlerContext,
  memoryInbox,
  type PaymentEvent,
} from "@payhooks/core";
import { OnDeposit, OnSettlementApproved, OnWithdrawal, PayhooksModule } from "@payhooks/nestjs";

/** Handlers are methods of any provider. The arguments of its constructor are injected, as everywhere in NestJS. */
@Injectable()
class Payments {
  /** Runs on SUCCESS only. ctx.effectId is the same on every retry: save it with the credit, in a unique column. */
  @OnDeposit()
  async credit(deposit: PaymentEvent<"DEPOSIT">, ctx: HandlerContext) {
    console.log(`credit ${deposit.amount} for ${deposit.referenceId} once as ${ctx.effectId}`);
  }

  @OnWithdrawal({ status: "FAILED" })
  async refund(withdrawal: PaymentEvent<"WITHDRAWAL">) {
    console.log(`refund ${withdrawal.referenceId}: ${withdrawal.message}`);
  }

  @OnSettlementApproved()
  async book({ data }: ConnectEvent<"settlement.approved">) {
    console.log(`book ${data.id}: ${data.amount}`);
  }
}

@Module({
  imports: [
    PayhooksModule.forRootAsync({
      useFactory: () => ({
        receiver: createReceiver({
          payments: { publicKey: process.env.PAY_PUBLIC_KEY },
          connect: { secret: process.env.CONNECT_WEBHOOK_SECRET },
          inbox: memoryInbox(), // loses acknowledged events when the process dies: see docs/guides/inboxes.md
        })
          .ignore("connected_account.approved")
          .ignore("connected_account.declined")
          .ignore("settlement.declined"),
        paths: { payments: "/callbacks/pay", connect: "/webhooks/connect" },
        probes: { live: "/live", ready: "/ready" },
      }),
    }),
  ],
  providers: [Payments],
})
class AppModule {}

const app = await NestFactory.create(AppModule);
app.enableShutdownHooks();
await app.listen(process.env.PORT ?? 3000);
console.log("listening", app.getHttpServer().address());
