import torch


@torch.no_grad()
def evaluate(model, loader):
    training = model.training
    model.eval()
    right = sum(int((model(images).argmax(-1) == labels).sum()) for images, labels in loader)
    model.train(training)
    return right / len(loader.dataset)


def train_epoch(model, loader, criterion, optimizer, scheduler, scaler):
    total = 0.0
    for images, labels in loader:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(images)
        loss = criterion(logits.float(), labels)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()
        total += loss.item()
    return total / len(loader)
